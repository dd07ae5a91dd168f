"""A look at folders that are not as they should be."""

import numpy as np
import pytest
from PIL import Image

from idarts.data import load
from idarts.errors import InputError
from idarts.fitting import look
from idarts.fitting.look import named, without_test_images


def picture(path, seed, size=(20, 16), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


@pytest.fixture
def pets(tmp_path):
    """Two classes with a test set, a damaged file, a copy, and a training image that is also a test image."""
    for place in range(30):
        kind = "cat" if place % 2 else "dog"
        picture(tmp_path / "train" / kind / f"{place}.png", place, (20 + place, 40))
    for place in range(6):
        picture(tmp_path / "test" / ("cat" if place % 2 else "dog") / f"{place}.png", 100 + place)
    picture(tmp_path / "train" / "cat" / "copy.png", 1, (21, 40))
    picture(tmp_path / "train" / "dog" / "leak.png", 100)
    (tmp_path / "train" / "dog" / "damaged.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_a_look_counts_copies_leaks_and_damage(pets):
    with pytest.warns(UserWarning, match="cannot be read"):
        seen, data = look(f"folder:{pets}")
    assert (seen.classes, seen.train, seen.test) == (2, 32, 6)
    assert (seen.copies, seen.shared, seen.unreadable) == (1, 1, 1)
    assert seen.sizes == ("20×16", "49×40")
    assert not seen.grey
    assert len(without_test_images(data).train) == 31
    text = "\n".join(seen.lines())
    assert "because they are also test images: 1" in text
    assert "because they cannot be read: 1" in text


def test_the_kept_images_are_no_test_images(pets):
    with pytest.warns(UserWarning, match="cannot be read"):
        data = without_test_images(load(f"folder:{pets}"))
    test = {image.numpy().tobytes() for image in data.test.images}
    assert not test & {image.numpy().tobytes() for image in data.train.images}


def test_grey_files_are_grey_although_they_are_loaded_as_rgb(tmp_path):
    for place in range(12):
        picture(tmp_path / ("a" if place % 2 else "b") / f"{place}.png", place, mode="L")
    seen, _ = look(f"folder:{tmp_path}")
    assert seen.grey
    assert seen.channels == 3


def test_a_folder_needs_no_prefix(tmp_path):
    assert named(str(tmp_path)) == named(tmp_path) == f"folder:{tmp_path}"
    assert named("cifar10") == "cifar10"


def test_data_without_labels_of_two_classes_are_refused(tmp_path):
    picture(tmp_path / "only" / "a.png", 0)
    with pytest.raises(InputError, match="one sub-folder"):
        look(f"folder:{tmp_path}")
