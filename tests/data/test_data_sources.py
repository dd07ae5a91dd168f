"""Every source gives the pixels, labels and names that were written, in the official formats."""

import json
import os
import pickle
import shutil

import numpy as np
import official_files as files
import pytest
import torch
from official_files import Jittered, Pictures
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset

from idarts.data import Images, LazyImages, load
from idarts.errors import InputError


def nhwc(part: Images) -> np.ndarray:
    return part.images.permute(0, 2, 3, 1).numpy()


def test_digits_keep_all_their_levels():
    data = load("digits", hold_out=0)
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    assert data.test is None
    assert data.train.images.dtype == torch.uint8
    assert data.train.labels.dtype == torch.int64
    assert torch.equal(data.train.labels, torch.from_numpy(y))
    back = data.train.images[:, 0].double() * 16 / 255
    assert np.array_equal(back.round().numpy(), x.reshape(-1, 8, 8))


def test_digits_hold_out_a_stratified_test_set():
    data = load("digits")
    counts = torch.bincount(data.test.labels)
    assert counts.min() >= 34
    assert counts.max() <= 37
    assert not set(data.train.indices.tolist()) & set(data.test.indices.tolist())
    assert len(data.train) + len(data.test) == 1797
    assert data.mean[0] == pytest.approx(float(data.train.images.double().mean()) / 255)


@pytest.mark.parametrize("write", [files.cifar10_python, files.cifar10_binary])
@pytest.mark.parametrize("inside", [False, True], ids=["parent", "the folder itself"])
def test_cifar10(tmp_path, write, inside):
    x, y = write(tmp_path)
    data = load("cifar10", next(tmp_path.iterdir()) if inside else tmp_path)
    assert np.array_equal(nhwc(data.train), x[:20])
    assert np.array_equal(nhwc(data.test), x[20:])
    assert data.train.labels.tolist() + data.test.labels.tolist() == y.tolist()
    assert data.classes[3] == ("class 3" if write is files.cifar10_python else "cat")
    assert data.mean == pytest.approx((125.3 / 255, 123 / 255, 113.9 / 255))
    assert data.statistics == "published"


@pytest.mark.parametrize("write", [files.cifar100_python, files.cifar100_binary])
def test_cifar100(tmp_path, write):
    x, y = write(tmp_path)
    data = load("cifar100", tmp_path)
    assert np.array_equal(nhwc(data.train), x[:8])
    assert data.test.labels.tolist() == y[8:].tolist()
    assert len(data.classes) == 100
    assert data.classes[99].replace(" ", "") == "fine99"


def test_the_pickles_written_here_are_what_python_2_wrote():
    content = {"data": files.pixels(2, 12), "labels": [3, 200], "name": "x"}
    restored = pickle.loads(files.python2_pickle(content), encoding="bytes")
    assert np.array_equal(restored[b"data"], content["data"])
    assert (restored[b"labels"], restored[b"name"]) == ([3, 200], b"x")


def test_python_3_pickles_of_batches_are_read_too(tmp_path):
    """Protocol 2 from Python 3 spells bytes through the codec latin1."""
    x, _ = files.cifar10_python(tmp_path)
    folder = tmp_path / "cifar-10-batches-py"
    content = {"data": files.planes(x[:4]), "labels": [0, 1, 2, 3], "filenames": ["a", "b"]}
    for protocol in (2, 4):
        (folder / "data_batch_1").write_bytes(pickle.dumps(content, protocol=protocol))
        assert np.array_equal(nhwc(load("cifar10", tmp_path).train), x[:20])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", [".", "fashion-mnist", "FashionMNIST/raw"])
def test_fashion_mnist(tmp_path, folder, packed):
    x, y = files.fashion_mnist(tmp_path / folder, packed)
    data = load("fashion-mnist", tmp_path)
    assert np.array_equal(data.train.images[:, 0].numpy(), x[:20])
    assert data.test.labels.tolist() == y[20:].tolist()
    assert data.classes[9] == "Ankle boot"
    assert data.mean[0] == pytest.approx(x[:20].mean() / 255)
    assert data.std[0] == pytest.approx(x[:20].std() / 255)


def test_the_root_may_come_from_the_environment(tmp_path, monkeypatch):
    files.fashion_mnist(tmp_path, packed=True)
    monkeypatch.setenv("IDARTS_DATA", str(tmp_path))
    assert len(load("fashion-mnist").train) == 20


def test_debian_s_package_is_found_without_a_root(tmp_path, monkeypatch):
    files.fashion_mnist(tmp_path / "fashion-mnist", packed=True)
    monkeypatch.delenv("IDARTS_DATA", raising=False)
    monkeypatch.setattr("idarts.data.sources.fashion_mnist.DEBIAN", str(tmp_path))
    assert len(load("fashion-mnist").train) == 20


@pytest.mark.parametrize(
    ("x", "y", "x_test", "y_test"),
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("images_train", "labels_train", "images_test", "labels_test"),
        ("trainX", "trainY", "testX", "testY"),
        ("train_data", "train_targets", "test_data", "test_targets"),
    ],
)
def test_npz_keys(tmp_path, x, y, x_test, y_test):
    images, labels = files.pixels(9, 8, 8, 3), np.arange(9).reshape(-1, 1) % 3
    arrays = {x: images[:6], y: labels[:6], x_test: images[6:], y_test: labels[6:], "class_names": list("abc")}
    np.savez(tmp_path / "a.npz", **arrays)
    data = load(f"npz:{tmp_path / 'a.npz'}")
    assert np.array_equal(nhwc(data.train), images[:6])
    assert np.array_equal(nhwc(data.test), images[6:])
    assert data.classes == ("a", "b", "c")


def test_npz_without_a_test_set_and_with_a_validation_set(tmp_path):
    images, labels = files.pixels(20, 8, 8), np.arange(20) % 2
    np.savez(tmp_path / "a.npz", x=images, y=labels)
    data = load(f"npz:{tmp_path / 'a.npz'}")
    assert (len(data.train), len(data.test), data.valid) == (16, 4, None)
    np.savez(tmp_path / "b.npz", train_images=images, train_labels=labels, val_images=images, val_labels=labels)
    assert len(load(f"npz:{tmp_path / 'b.npz'}").valid) == 20


def test_npz_under_the_names_of_data_sets(tmp_path):
    images, labels = files.pixels(20, 32, 32, 3), np.arange(20) % 10
    np.savez(tmp_path / "cifar10_full.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    np.savez(tmp_path / "fashion_mnist_subset.npz", x_train=images[..., 0], y_train=labels)
    assert load("cifar10", tmp_path).classes[0] == "airplane"
    assert load("fashion-mnist", tmp_path).train.shape == (1, 32, 32)


@pytest.mark.parametrize("ending", ["png", "jpg", "bmp", "webp"])
def test_folder(tmp_path, ending):
    files.image_folder(tmp_path, ending=ending)
    data = load(f"folder:{tmp_path}", image=8, hold_out=0)
    assert data.classes == ("cat", "dog")
    assert data.train.images.shape == (10, 3, 8, 8)
    assert data.train.labels.tolist() == [0] * 5 + [1] * 5
    means = data.train.images.float().mean((2, 3))
    wanted = torch.tensor([[50 * label, 10 * i, 200] for label in (0, 1) for i in range(5)])
    assert (means - wanted).abs().max() < (1e-6 if ending in ("png", "bmp") else 8)


def test_hidden_folders_hold_no_images(tmp_path):
    files.image_folder(tmp_path)
    shutil.copytree(tmp_path / "cat", tmp_path / "cat" / "deep" / ".thumbnails")
    shutil.copytree(tmp_path / "cat", tmp_path / ".trash")
    assert len(load(f"folder:{tmp_path}", hold_out=0).train) == 10


def test_images_that_pillow_cannot_read_do_not_vanish(tmp_path):
    files.image_folder(tmp_path, ending="jfif")
    (tmp_path / "cat" / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    with pytest.warns(UserWarning, match=r"1 of 11 images cannot be read \(cat/phone.HEIC"):
        data = load(f"folder:{tmp_path}", hold_out=0, unreadable=0.1)
    assert len(data.train) == 10


def test_a_folder_with_its_own_parts(tmp_path):
    for part, count in (("train", 5), ("val", 2), ("test", 3)):
        files.image_folder(tmp_path / part, per_class=count)
    data = load(f"folder:{tmp_path}")
    assert [len(part) for part in (data.train, data.valid, data.test)] == [10, 4, 6]
    assert data.train.shape == (3, 32, 32)


def test_a_folder_of_parts_or_of_classes_but_not_both(tmp_path):
    files.image_folder(tmp_path)
    files.image_folder(tmp_path / "train")
    with pytest.raises(InputError, match=r"train/ beside other .* such as cat/; if all of them are classes, put them"):
        load(f"folder:{tmp_path}")


def test_a_class_may_have_the_name_of_a_part(tmp_path):
    """As the error above says."""
    files.image_folder(tmp_path / "train", classes=("bus", "train"))
    assert load(f"folder:{tmp_path}", hold_out=0).classes == ("bus", "train")


def test_folder_brings_every_kind_of_image_to_rgb(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    Image.new("L", (9, 7), 100).save(one / "grey.png")
    Image.new("RGBA", (9, 7), (100, 100, 100, 255)).save(one / "opaque.png")
    Image.new("RGB", (9, 7), (100, 100, 100)).quantize().save(one / "palette.png")
    Image.fromarray(np.full((7, 9), 100 * 256 + 99, np.uint16)).save(one / "deep.png")
    Image.fromarray(np.full((7, 9), 100 * 256 + 99, np.int32)).save(one / "wide.tiff")
    Image.new("1", (9, 7), 1).save(two / "bits.png")
    Image.new("RGBA", (9, 7), (1, 2, 3, 0)).save(two / "transparent.png")
    Image.new("LA", (9, 7), (0, 0)).save(two / "grey transparent.png")
    images = load(f"folder:{tmp_path}", image=4, hold_out=0).train.images
    assert images.flatten(1).float().mean(1).tolist() == [100.0] * 5 + [255.0] * 3
    assert (images.flatten(1).float().std(1) == 0).all()


def test_photographs_stand_upright(tmp_path):
    """A phone stores a turn beside the pixels: orientation 3 is upside down."""
    files.image_folder(tmp_path)
    picture = Image.new("RGB", (16, 16), "black")
    picture.paste("white", (0, 0, 16, 8))
    exif = Image.Exif()
    exif[0x0112] = 3
    picture.save(tmp_path / "cat" / "0.png", exif=exif)
    first = load(f"folder:{tmp_path}", image=16, hold_out=0).train.images[0].float()
    assert first[:, :8].mean() < first[:, 8:].mean()


def test_a_large_folder_is_read_while_it_is_used(tmp_path):
    files.image_folder(tmp_path)
    lazy = load(f"folder:{tmp_path}", image=8, hold_out=0, memory=100)
    eager = load(f"folder:{tmp_path}", image=8, hold_out=0)
    assert isinstance(lazy.train, LazyImages)
    assert torch.equal(torch.stack([lazy.train.dataset[i] for i in range(10)]), eager.train.images)
    assert lazy.train.labels.tolist() == eager.train.labels.tolist()
    assert lazy.mean == eager.mean
    assert "sample of 10" in lazy.statistics


@pytest.mark.parametrize(
    "x",
    [
        files.pixels(20, 8, 8, 3),
        torch.from_numpy(files.pixels(20, 8, 8, 3)).permute(0, 3, 1, 2),
        files.pixels(20, 8, 8, 3).astype(np.int32),
        files.pixels(20, 8, 8, 3).astype(np.float64),
        files.pixels(20, 8, 8, 3).astype(np.float32) / 255,
        files.pixels(20, 8, 8, 3).astype(">u2"),
    ],
    ids=["uint8", "NCHW tensor", "int32", "float 255", "float 1", "big endian"],
)
def test_arrays_of_any_kind(x):
    data = load((x, np.arange(20) % 2), hold_out=0)
    assert np.array_equal(nhwc(data.train), files.pixels(20, 8, 8, 3))


def test_a_pair_of_pairs_shares_the_scale_of_the_training_images():
    x, y = np.full((4, 8, 8), 200.0), np.arange(4) % 2
    dark = np.full((2, 8, 8), 1.0)
    data = load(((x, y), (dark, y[:2])))
    assert data.test.images.unique().tolist() == [1]


def test_other_numbers_of_channels_with_a_layout():
    x, y = files.pixels(10, 8, 8, 5), np.arange(10) % 2
    assert load((x, y), layout="NHWC").train.shape == (5, 8, 8)
    assert load((x, y), layout="NCHW").train.shape == (8, 8, 5)


def test_images_are_resized_on_request():
    data = load("digits", image=32, hold_out=0)
    small = load("digits", hold_out=0)
    assert data.train.shape == (1, 32, 32)
    assert data.mean[0] == pytest.approx(small.mean[0], abs=0.01)


def test_torch_datasets():
    data = load((Pictures(), Pictures(6)))
    assert np.array_equal(nhwc(data.train), Pictures().pixels)
    assert data.classes == ("cat", "dog")
    assert len(data.test) == 6
    tensors = TensorDataset(torch.rand(10, 3, 8, 8), torch.arange(10) % 2)
    assert load(tensors, hold_out=0).train.shape == (3, 8, 8)
    assert load(Subset(Pictures(), [3, 5, 6]), hold_out=0).train.labels.tolist() == [1, 1, 0]


def test_datasets_that_do_not_fit_or_that_draw_stay_lazy():
    assert isinstance(load(Pictures(), memory=100).train, LazyImages)
    assert load(Subset(Pictures(), [3, 5, 6]), memory=100, hold_out=0).train.labels.tolist() == [1, 1, 0]
    assert isinstance(load(Jittered()).train, LazyImages)
    assert isinstance(load(Pictures()).train, Images)


@pytest.mark.parametrize("seed", range(5))
def test_a_transform_that_seldom_happens_is_not_frozen_by_chance(seed):
    class Seldom(Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, index):
            image = torch.zeros(1, 4, 4) if torch.rand(()) > 0.05 else torch.ones(1, 4, 4)
            return image, index % 2

    torch.manual_seed(seed)
    assert isinstance(load(Seldom()).train, LazyImages)


def test_the_description_is_plain_json():
    data = load("digits")
    record = json.loads(json.dumps(data.describe()))
    assert record["parts"]["train"]["size"] == 1438
    assert record["parts"]["test"]["rule"] == {"split": 0.8, "seed": 0, "part": 1}
    assert sum(record["parts"]["test"]["per_class"]) == 359
    assert record["mean"] == list(data.mean)
    assert (
        load("digits", seed=1).describe()["parts"]["test"]["indices_sha256"]
        != (record["parts"]["test"]["indices_sha256"])
    )


@pytest.fixture
def real():
    folder = os.environ.get("IDARTS_DATA")
    if not folder or not os.path.isdir(folder):
        pytest.skip("IDARTS_DATA names no folder with real data")
    return folder


def test_real_cifar10_has_the_published_statistics(real):
    from idarts.data import official_split
    from idarts.data.arrays import statistics

    if not os.path.exists(f"{real}/cifar10_full.npz"):
        pytest.skip("IDARTS_DATA names no folder with cifar10_full.npz")
    data = load("cifar10", real)
    assert (len(data.train), len(data.test), data.train.shape) == (50_000, 10_000, (3, 32, 32))
    assert torch.bincount(data.train.labels).tolist() == [5000] * 10
    mean, std = statistics(data.train.images)
    assert [round(255 * m, 1) for m in mean] == [125.3, 123.0, 113.9]
    assert [round(255 * s, 1) for s in std] == [63.0, 62.1, 66.7]
    if not os.path.exists(f"{real}/nasbench201_dataset_splits.npz"):
        pytest.skip("IDARTS_DATA names no folder with nasbench201_dataset_splits.npz")
    train, valid = official_split(data.train, "cifar10", real)
    assert len(train) == len(valid) == 25_000
    assert train.indices[:5].tolist() == [0, 5, 7, 11, 13]
    assert torch.equal(valid.labels, data.train.labels[valid.indices])


def test_real_fashion_mnist(real):
    if not os.path.exists(f"{real}/fashion_mnist_subset_10k_2k.npz"):
        pytest.skip("IDARTS_DATA names no folder with fashion_mnist_subset_10k_2k.npz")
    data = load("fashion-mnist", real)
    assert (data.train.shape, len(data.train), len(data.test)) == ((1, 28, 28), 10_000, 2_000)
    assert torch.bincount(data.train.labels).tolist() == [1000] * 10
    assert data.mean[0] == pytest.approx(0.286, abs=0.005)
    assert data.std[0] == pytest.approx(0.353, abs=0.005)
