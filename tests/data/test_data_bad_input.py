"""What can be wrong with data: one line that says what, where, and what to do."""

import dataclasses
import os
import pickle
import re

import numpy as np
import official_files as files
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from idarts.data import CIFAR, Batches, load
from idarts.errors import InputError

X, Y = files.pixels(10, 8, 8, 3), np.arange(10) % 2


def refused(source, words, *args, **options):
    with pytest.raises(InputError, match=words) as caught:
        load(source, *args, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("cifar-10", "did you mean cifar10?"),
        ("cifar1000", "did you mean cifar100?"),
        ("fashion_mnist", "did you mean fashion-mnist?"),
        ("digit", "did you mean digits?"),
        ("folders:x", "did you mean folder:PATH?"),
        ("imagenet", "the sources are cifar10, cifar100, digits, fashion-mnist, folder:PATH, npz:PATH"),
        ("", "the sources are cifar10"),
        ("folder:", "has no path; write folder:PATH"),
        ("folder", "has no path; write folder:PATH"),
        ("digits:x", "did you mean digits?"),
        ("my_module:source", "type your own on the command line, or pass it from Python"),
        ("npz:", "has no path"),
        (7, "data of type int cannot be used"),
        ((X, Y, X), "data of type tuple cannot be used"),
    ],
)
def test_unknown_sources(source, words):
    refused(source, words)


def test_a_path_without_its_kind(tmp_path):
    refused(str(tmp_path), "write folder:")
    np.savez(tmp_path / "a.npz", x=X, y=Y)
    refused(tmp_path / "a.npz", "write npz:")


@pytest.mark.parametrize(
    "options", [{"image": 0}, {"image": 2.5}, {"hold_out": 1}, {"unreadable": 2}, {"layout": "HWC"}]
)
def test_options(options):
    refused((X, Y), "expected", **options)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X.reshape(10, -1), Y, r"shape \(10, 192\), expected"),
        (X[:0], Y[:0], "there are no images"),
        (files.pixels(10, 8, 8, 4), Y, "without an axis of 1 or 3 channels"),
        (np.where(X[0].max() == X, np.nan, X / 255), Y, "image 0 holds NaN"),
        (np.full((10, 8, 8), np.inf), Y, "NaN or infinite"),
        (np.random.default_rng(0).normal(size=(10, 8, 8)), Y, "give raw images, not normalised"),
        (X.astype(np.int64) * 257, Y, "expected 0 to 255"),
        (X.astype(np.float32) * 3, Y, "expected 0 to 255"),
        (X.astype(np.int16) - 1, Y, "range from -1"),
        (X.astype(str), Y, "expected numbers"),
        (X, Y[:9], "9 labels for 10 images"),
        (X, Y - 1, "label -1 at index 0 is out of range"),
        (X, Y * 1000, "label 1000 at index 1 is out of range"),
        (X, Y + 0.5, "labels are float64, expected integers"),
        (X, Y == 1, "labels are bool"),
        (X, np.array(["a", "b"] * 5), "expected numbers"),
        (X, np.eye(2)[Y].astype(int), "take the argmax of one-hot labels"),
        (X, Y * 0, "all 10 images are of one class"),
        ([[1, 2], [3]], Y, "rows of different lengths"),
    ],
)
def test_arrays(x, y, words):
    refused((x, y), words)
    if isinstance(x, np.ndarray) and x.dtype.kind != "U" and isinstance(y, np.ndarray) and y.dtype.kind != "U":
        layout = {"layout": "NHWC"} if x.ndim == 4 and x.shape[3] != 4 else {}
        refused((torch.from_numpy(x), torch.from_numpy(y)), words, **layout)


def test_parts_that_do_not_agree():
    refused(((X, Y), (X[:, :4], Y)), r"test images have shape \(3, 4, 8\), training images \(3, 8, 8\)")
    refused(((X, Y), (X, Y + 1)), "test labels: label 2 at index 1 is out of range, expected 0 to 1")
    refused((X, Y), "out of range, expected 0 to 0", classes=["only"])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": X}, "no training images among the keys pictures; expected x_train"),
        ({"x_train": X}, "x_train has no labels beside it"),
        ({"y_train": Y}, "y_train has no images beside it"),
        ({"x": X, "y": np.array([None] * 10)}, "holds Python objects"),
    ],
)
def test_npz(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    refused(f"npz:{tmp_path / 'a.npz'}", words)


def test_damaged_npz(tmp_path):
    refused(f"npz:{tmp_path / 'no.npz'}", "there is no file")
    file = tmp_path / "a.npz"
    np.savez(file, x=X, y=Y)
    file.write_bytes(file.read_bytes()[:1000])
    refused(f"npz:{file}", "is not a complete .npz archive")
    file.write_bytes(b"hello")
    refused(f"npz:{file}", "is not a complete .npz archive")
    np.save(tmp_path / "b.npy", X)
    refused(f"npz:{tmp_path / 'b.npy'}", "is not a complete .npz archive")


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion-mnist"])
def test_missing_files(tmp_path, monkeypatch, name):
    monkeypatch.setattr("idarts.data.sources.fashion_mnist.DEBIAN", str(tmp_path / "none"))
    monkeypatch.delenv("IDARTS_DATA", raising=False)
    refused(name, "give their folder with --data-root or IDARTS_DATA; expected there: ")
    refused(name, "is not in .*; expected there: .*npz", tmp_path)
    refused(name, "does not exist; correct --data-root or IDARTS_DATA", tmp_path / "none")


def test_incomplete_cifar(tmp_path):
    files.cifar10_python(tmp_path / "a")
    (tmp_path / "a" / "cifar-10-batches-py" / "data_batch_3").unlink()
    refused("cifar10", "lacks data_batch_3", tmp_path / "a")
    files.cifar10_binary(tmp_path / "b")
    file = tmp_path / "b" / "cifar-10-batches-bin" / "data_batch_3.bin"
    file.write_bytes(file.read_bytes()[:-1])
    refused("cifar10", "data_batch_3.bin has 12291 bytes, expected a multiple of 3073", tmp_path / "b")


@pytest.mark.parametrize("cut", [0, 1, 30, 1000, -1])
def test_truncated_pickles(tmp_path, cut):
    files.cifar10_python(tmp_path)
    file = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    file.write_bytes(file.read_bytes()[:cut])
    refused("cifar10", "data_batch_2 is incomplete or not the official file", tmp_path)


class Evil:
    def __init__(self, flag):
        self.flag = flag

    def __reduce__(self):
        return os.mkdir, (str(self.flag),)


def test_a_malicious_pickle_does_not_run(tmp_path):
    """Written as a batch; whatever it calls is refused before it is called."""
    x, _ = files.cifar10_python(tmp_path)
    flag = tmp_path / "it ran"
    good = {"data": files.planes(x[:4]), "labels": [0, 1, 2, 3]}
    for protocol in (0, 2, 4, 5):
        batch = {"extra": Evil(flag), **good}
        (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=protocol))
        refused("cifar10", r"data_batch_1 was refused: its pickle calls \w+\.mkdir", tmp_path)
    assert not flag.exists()


@pytest.mark.parametrize(
    "payload",
    [
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.testing._private.utils\nrunstring\n(S'print(1)'\n}tR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\ngetattr\n(S'1'\nS'x'\ntR.",
        b"(S'id'\nios\nsystem\n.",
        b"cnumpy\nndarray\n(I9\ntR.",
        b"c_codecs\nencode\n(S'x'\nS'zip'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x10dtype.__reduce__\x93.",
        b"cnumpy.core.multiarray\n_reconstruct\n(tR(I1\n(I1\ntcnumpy\ndtype\n(S'O'\ntRI00\n(lp0\ntb.",
        b"Pname\n.",
        b"I5\n.",
    ],
)
def test_other_tricks_in_pickles(tmp_path, payload):
    files.cifar10_python(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(payload)
    refused("cifar10", "data_batch_1 (was refused|is incomplete|does not hold a dictionary)", tmp_path)


def test_batches_with_wrong_content(tmp_path):
    x, _ = files.cifar10_python(tmp_path)
    file = tmp_path / "cifar-10-batches-py" / "data_batch_1"
    for content, words in [
        ({"data": files.planes(x[:4])}, "lacks the keys data and labels"),
        ({"data": files.planes(x[:4])[:, :100], "labels": [1] * 4}, r"expected uint8 \(N, 3072\)"),
        (
            {"data": files.planes(x[:4]), "labels": [1, 2, 3, 10]},
            "label 10 at index 3 is out of range, expected 0 to 9",
        ),
        ({"data": files.planes(x[:4]), "labels": [1, 2, 3]}, "19 labels for 20 images"),
    ]:
        file.write_bytes(pickle.dumps(content, protocol=2))
        refused("cifar10", words, tmp_path)


def test_damaged_idx(tmp_path):
    files.fashion_mnist(tmp_path, packed=False)
    file = tmp_path / "t10k-images-idx3-ubyte"
    whole = file.read_bytes()
    for content, words in [
        (whole[:-5], "holds 7835 bytes of data, its header says 7840"),
        (whole[:10], "ends in its header"),
        (b"", "is not an idx file"),
        (b"hello world", "is not an idx file"),
        (b"\x1f\x8b" + whole, "cannot be read"),
    ]:
        file.write_bytes(content)
        refused("fashion-mnist", words, tmp_path)
    file.unlink()
    refused("fashion-mnist", "lacks t10k-images-idx3-ubyte", tmp_path)


def test_two_archives_that_could_be_meant(tmp_path):
    for name in ("cifar10_a.npz", "cifar10_b.npz"):
        np.savez(tmp_path / name, x=X, y=Y)
    refused("cifar10", "several files for cifar10 .*; name one with npz:PATH", tmp_path)


def test_folders(tmp_path):
    refused(f"folder:{tmp_path / 'none'}", "there is no folder")
    refused(f"folder:{tmp_path}", "no sub-folder with images")
    (tmp_path / "empty").mkdir()
    refused(f"folder:{tmp_path}", "no sub-folder with images")
    files.image_folder(tmp_path / "one", classes=("cat",))
    refused(f"folder:{tmp_path / 'one'}", r"one sub-folder with images \(cat\).*at least two classes")
    files.image_folder(tmp_path / "two" / "train")
    files.image_folder(tmp_path / "two" / "test", classes=("cat", "cow"))
    refused(f"folder:{tmp_path / 'two'}", "has the class 'cow', which the training images lack")


@pytest.mark.parametrize("memory", [2**31, 100], ids=["in memory", "lazy"])
def test_unreadable_images_are_left_out_with_one_warning_and_then_refused(tmp_path, memory):
    files.image_folder(tmp_path, per_class=30, ending="jpg")
    for i in (0, 1):
        (tmp_path / "cat" / f"{i}.jpg").write_bytes(b"\xff\xd8\xff" if i else b"")
    with pytest.warns(UserWarning, match=r"2 of 60 images cannot be read \(cat/0.jpg, cat/1.jpg; .*left out") as caught:
        data = load(f"folder:{tmp_path}", hold_out=0, memory=memory)
    assert len(caught) == 1
    assert data.train.labels.tolist() == [0] * 28 + [1] * 30
    refused(f"folder:{tmp_path}", "2 of 60 images cannot be read .*more than 1%", unreadable=0.01, memory=memory)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 1])
def test_lazy_images_that_turn_out_to_be_damaged(tmp_path, workers):
    """The header is sound, so this shows only when the pixels are read; the rest of the batch goes on."""
    files.image_folder(tmp_path, per_class=30)
    whole = load(f"folder:{tmp_path}", hold_out=0).train
    Image.fromarray(files.pixels(1, 64, 64, 3)[0]).save(tmp_path / "cat" / "0.png")
    content = (tmp_path / "cat" / "0.png").read_bytes()
    (tmp_path / "cat" / "0.png").write_bytes(content[:-1500])
    data = load(f"folder:{tmp_path}", hold_out=0, memory=100)
    part = dataclasses.replace(data.train, mean=whole.mean, std=whole.std)
    batches = Batches(part, 20, augment=CIFAR, workers=workers)
    with pytest.warns(UserWarning, match="cat/0.png cannot be read as an image .*it is left out") as caught:
        taken = [next(batches) for _ in range(9)]
    assert len(caught) == 1
    assert sorted(len(y) for _, y in taken) == [19] * 3 + [20] * 6
    stream = Batches(whole, 20, augment=CIFAR)
    full = [next(stream) for _ in range(9)]
    for (x, y), (x_whole, y_whole) in zip(taken, full, strict=True):
        assert len(y) < 20 or (torch.equal(x, x_whole) and torch.equal(y, y_whole))
        assert all(any(torch.equal(one, other) for other in x_whole) for one in x)
    message = error_of(Batches(dataclasses.replace(part, unreadable=0.0), 20, workers=workers))
    assert re.fullmatch(r"[^\n]*cat/0.png cannot be read as an image \([^\n]*\); remove it", message)


def error_of(batches):
    """Its text only: an error that is kept keeps the loader, whose workers then end five seconds late."""
    try:
        return list(batches.one_epoch()) and "no error"
    except InputError as error:
        return str(error)


def test_folders_of_which_too_little_is_left(tmp_path):
    files.image_folder(tmp_path)
    for file in (tmp_path / "cat").iterdir():
        file.write_bytes(b"")
    for memory in (2**31, 100):
        refused(
            f"folder:{tmp_path}", r"cat holds no image that can be read \(.*\); repair", unreadable=1.0, memory=memory
        )
    for file in (tmp_path / "dog").iterdir():
        file.write_bytes(b"")
    refused(f"folder:{tmp_path}", "10 of 10 images cannot be read", unreadable=1.0)


def test_truncated_images(tmp_path):
    files.image_folder(tmp_path, per_class=30)
    big = Image.fromarray(files.pixels(1, 64, 64, 3)[0])
    for name, place in (("a.jpg", "cat"), ("b.png", "dog"), ("c.webp", "dog")):
        file = tmp_path / place / name
        big.save(file)
        file.write_bytes(file.read_bytes()[:-1500])
    with pytest.warns(UserWarning, match=r"3 of 63 images .*cat/a.jpg, dog/b.png, dog/c.webp"):
        assert len(load(f"folder:{tmp_path}", hold_out=0).train) == 60


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((7, 9), 200, np.int32), "32-bit integers has no agreed range"),  # black, if they were of 16 bits
        (np.full((7, 9), 70_000, np.int32), "32-bit integers has no agreed range"),
        (np.full((7, 9), 0.5, np.float32), "floats has no agreed range"),
    ],
)
def test_images_whose_range_nobody_knows(tmp_path, values, words):
    files.image_folder(tmp_path, per_class=30)
    Image.fromarray(values).save(tmp_path / "cat" / "a.tiff")
    with pytest.warns(UserWarning, match=f"1 of 61 images .*cat/a.tiff.*{words}"):
        assert len(load(f"folder:{tmp_path}", hold_out=0).train) == 60


class Wrong(Dataset):
    def __init__(self, item):
        self.item = item

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.item(index)


class Endless(IterableDataset):
    def __iter__(self):
        yield X[0], 0


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (Endless(), "without a length"),
        (Wrong(lambda i: X[i]), r"train\[0\] is ndarray, expected a pair"),
        (Wrong(lambda i: ("a.png", i)), "is str, expected a Pillow image"),
        (Wrong(lambda i: (X[i], "cat")), "expected numbers"),
        (Wrong(lambda i: (torch.randn(3, 8, 8), i)), "not normalised"),
        (Wrong(lambda i: (X[i], 1)), "one class"),
        (TensorDataset(torch.zeros(0, 3, 8, 8), torch.zeros(0)), "is empty"),
    ],
)
@pytest.mark.parametrize("memory", [2**31, 0], ids=["in memory", "lazy"])
def test_datasets(dataset, words, memory):
    refused(dataset, words, memory=memory)


def test_images_of_several_shapes_in_memory():
    refused(Wrong(lambda i: (X[i][: 4 + i], i)), r"train\[1\] has shape .*; give image=SIZE", memory=2**31)


def test_a_class_with_one_image_is_named(tmp_path):
    x, y = np.random.default_rng(0).integers(0, 256, (9, 8, 8), dtype=np.uint8), [0, 0, 0, 0, 1, 1, 1, 1, 2]
    with pytest.raises(InputError, match="only one image of the class '2', which cannot be both trained and tested on"):
        load((x, y))
    assert len(load((x, y), hold_out=0).train) == 9
    assert len(load(((x, y), (x, y))).train) == 9


def test_an_empty_class_folder_is_named(tmp_path):
    for name in ("cat/a.png", "cat/b.png", "dog/a.png", "dog/b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "emu").mkdir()
    (tmp_path / "emu" / "photo.xcf").write_bytes(b"a format that is not read")
    with pytest.raises(InputError, match=r"emu holds no images \(\.avif, .*\); add images of this class, or remove"):
        load(f"folder:{tmp_path}")


@pytest.mark.parametrize("labels", [np.array([0.0, 1.0] * 4), torch.tensor([0.0, 1.0] * 4), [0.0, 1.0] * 4])
def test_labels_that_are_floats_are_one_line(labels):
    images = np.zeros((8, 4, 4), dtype=np.uint8)
    with pytest.raises(InputError, match=r"train labels: labels are float(32|64), expected integers from 0; convert"):
        load((images, labels))
    pairs = torch.utils.data.TensorDataset(torch.zeros(8, 1, 4, 4), torch.as_tensor(labels))
    with pytest.raises(InputError, match=r"train labels: labels are float(32|64), expected integers"):
        load(pairs)
