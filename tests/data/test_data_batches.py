"""The stream: deterministic, resumable to the bit, every image augmented by draws of its own."""

import gc
import io
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from official_files import Jittered, Pictures

from idarts.data import CIFAR, NONE, Augment, Batches, Images, LazyImages, load, split
from idarts.data.augment import draw, render
from idarts.errors import InputError

EVERYTHING = Augment(crop=2, flip=True, cutout=3)


def coded(count: int = 50, side: int = 8) -> Images:
    """Every image of one colour of its own, so that a batch says which images it holds; none is black."""
    images = (torch.arange(count, dtype=torch.uint8) + 1)[:, None, None, None].expand(-1, 3, side, side)
    return Images(images, torch.arange(count) % 5, (0.0,) * 3, (1 / 255,) * 3)


def take_from(batches: Batches, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [next(batches) for _ in range(count)]


def assert_same(one, two):
    for (x, y), (x_2, y_2) in zip(one, two, strict=True):
        assert torch.equal(x, x_2)
        assert torch.equal(y, y_2)


def saved(state):
    """Through a file, as a checkpoint does, with nothing but tensors and numbers allowed."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)


def test_normalisation_is_the_published_formula():
    data = load("digits")
    batches = Batches(data.test, 50, shuffle=False)
    x, y = next(batches)
    wanted = (data.test.images[:50].double() / 255 - data.mean[0]) / data.std[0]
    torch.testing.assert_close(x, wanted.float(), rtol=0, atol=1e-6)
    assert torch.equal(y, data.test.labels[:50])
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_normalised_training_images_have_mean_zero_and_deviation_one():
    data = load("digits", hold_out=0)
    x = torch.cat([x for x, _ in Batches(data.train, 100, drop_last=False).one_epoch()])
    assert abs(float(x.double().mean())) < 1e-6
    assert float(x.double().std(correction=0)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("drop_last", [True, False])
def test_an_epoch_has_every_image_once(drop_last):
    batches = Batches(coded(), 8, drop_last=drop_last, seed=3)
    orders = []
    for epoch in range(3):
        assert batches.epoch == epoch
        seen = torch.cat([x[:, 0, 0, 0] for x, _ in batches.one_epoch()]).round().int().tolist()
        assert len(seen) == len(set(seen)) == (48 if drop_last else 50)
        orders.append(seen)
    assert orders[0] != orders[1] != orders[2]
    assert len(batches) == (6 if drop_last else 7)


def test_labels_stay_with_their_images():
    for x, y in take_from(Batches(coded(), 8, augment=CIFAR), 20):
        assert torch.equal((x.amax((1, 2, 3)).round().long() - 1) % 5, y)


def test_the_seed_decides_and_nothing_else():
    part = load("digits").train
    torch.manual_seed(1)
    first = take_from(Batches(part, 64, seed=5, augment=EVERYTHING), 30)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert_same(first, take_from(Batches(part, 64, seed=5, augment=EVERYTHING), 30))
    assert torch.equal(torch.get_rng_state(), before)
    other = next(Batches(part, 64, seed=6, augment=EVERYTHING))[0]
    assert not torch.equal(other, first[0][0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 25), st.integers(0, 1000), st.booleans(), st.booleans())
def test_resume_anywhere_continues_to_the_bit(steps, seed, shuffle, drop_last):
    settings_ = {"augment": EVERYTHING, "shuffle": shuffle, "drop_last": drop_last}
    whole = Batches(coded(), 8, seed=seed, **settings_)
    take_from(whole, steps)
    state = saved(whole.state_dict())
    again = Batches(coded(), 8, seed=seed + 1, **settings_)
    take_from(again, 3)
    again.load_state_dict(state)
    assert (again.epoch, again.position) == (whole.epoch, whole.position)
    assert_same(take_from(whole, 15), take_from(again, 15))
    assert (again.epoch, again.position) == (whole.epoch, whole.position)


def test_a_state_is_a_snapshot():
    batches = Batches(coded(), 8)
    state = batches.state_dict()
    first = take_from(batches, 20)
    batches.load_state_dict(state)
    assert_same(first, take_from(batches, 20))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": 51}, "the state has 51 images in batches of 8, but this stream has 50"),
        ({"size": 16}, "in batches of 16"),
        ({"position": 99}, "damaged"),
        ({"generator": torch.zeros(3, dtype=torch.uint8)}, "damaged"),
        ({"generator": None}, "damaged"),
    ],
)
def test_a_foreign_state_is_refused(change, words):
    batches = Batches(coded(), 8)
    with pytest.raises(InputError, match=words):
        batches.load_state_dict({**batches.state_dict(), **change})
    with pytest.raises(InputError, match="lacks generator"):
        batches.load_state_dict({"epoch": 1, "position": 0, "images": 50, "size": 8})


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "8"])
def test_batch_sizes_that_make_no_sense(size):
    with pytest.raises(InputError, match="the batch size is"):
        Batches(coded(), size)


def test_a_batch_larger_than_the_split():
    with pytest.raises(InputError, match="a batch of 51 is larger than the split of 50 images"):
        Batches(coded(), 51)
    assert len(next(Batches(coded(), 51, drop_last=False))[1]) == 50


# Augmentation


def one_by_one(pixels, augment, draws):
    """The same by slicing, one image at a time, as the published transforms do."""
    out = []
    for i, image in enumerate(pixels.numpy()):
        if augment.crop:
            top, left = draws["crop"][:, i].tolist()
            padded = np.pad(image, ((augment.crop,) * 2, (augment.crop,) * 2, (0, 0)))
            image = padded[top : top + image.shape[0], left : left + image.shape[1]]  # noqa: PLW2901
        if augment.flip and draws["flip"][i]:
            image = image[:, ::-1]  # noqa: PLW2901
        image = image.astype(np.float32)  # noqa: PLW2901
        if augment.cutout:
            row, column = (draws["cutout"][:, i] - augment.cutout // 2).tolist()
            end_row, end_column = row + augment.cutout, column + augment.cutout
            image[max(row, 0) : max(end_row, 0), max(column, 0) : max(end_column, 0)] = 0
        out.append(image)
    return torch.from_numpy(np.stack(out)).permute(0, 3, 1, 2)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]),
    st.builds(Augment, crop=st.integers(0, 5), flip=st.booleans(), cutout=st.integers(0, 12)), st.integers(0, 2**31),
)  # fmt: skip
def test_the_batched_transforms_equal_those_of_single_images(height, width, channels, augment, seed):
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (7, height, width, channels), dtype=torch.uint8, generator=generator)
    draws = draw(augment, 7, height, width, generator)
    rendered = render(pixels, augment, draws, torch.ones(channels), torch.zeros(channels))
    assert torch.equal(rendered, one_by_one(pixels, augment, draws))


def test_every_image_has_its_own_crop_and_all_crops_occur():
    draws = draw(CIFAR, 5000, 32, 32, torch.Generator().manual_seed(0))
    places = {tuple(place) for place in draws["crop"].T.tolist()}
    assert places == {(row, column) for row in range(9) for column in range(9)}
    ramp = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16, 1)
    same = Images(ramp.expand(64, -1, -1, -1).permute(0, 3, 1, 2), torch.arange(64) % 2, (0.0,), (1.0,))
    x, _ = next(Batches(same, 64, augment=Augment(crop=4)))
    assert len({tuple(image.flatten().tolist()) for image in x}) > 30  # of 81 places, 64 images hit some 44


def test_half_of_the_images_are_flipped():
    flips = draw(CIFAR, 10_000, 8, 8, torch.Generator().manual_seed(0))["flip"].float()
    assert abs(float(flips.mean()) - 0.5) < 0.02  # four standard deviations
    assert abs(float((flips[1:] - flips[:-1]).abs().mean()) - 0.5) < 0.02  # one image says nothing of the next


def test_cutout_is_a_square_in_the_mean_colour():
    part = Images(torch.full((200, 3, 16, 16), 255, dtype=torch.uint8), torch.arange(200) % 2, (0.5,) * 3, (0.2,) * 3)
    x, _ = next(Batches(part, 200, augment=Augment(cutout=6)))
    holes = (x == 0).all(1)
    sizes = holes.sum((1, 2))
    assert int(sizes.max()) == 36
    assert int(sizes.min()) >= 9  # a centre in the corner leaves a quarter
    assert torch.equal(holes.any(1).sum(1) * holes.any(2).sum(1), sizes)  # rectangles
    assert len({tuple(hole.flatten().tolist()) for hole in holes}) > 80
    torch.testing.assert_close(x[~holes.unsqueeze(1).expand_as(x)].unique(), torch.tensor([2.5]))


def test_new_draws_every_epoch():
    part = coded(8)
    ramp = torch.arange(64, dtype=torch.uint8).reshape(1, 1, 8, 8).expand(8, 3, -1, -1)
    batches = Batches(Images(ramp, part.labels, part.mean, part.std), 8, augment=CIFAR, shuffle=False)
    assert not torch.equal(next(batches)[0], next(batches)[0])


@pytest.mark.parametrize("wrong", [{"crop": -1}, {"cutout": 1.5}, {"crop": True}])
def test_augmentations_that_make_no_sense(wrong):
    with pytest.raises(InputError, match="expected a number of pixels"):
        Augment(**wrong)


# What does not fit in memory


def lazy(part: Images) -> LazyImages:
    return LazyImages(list(part.images), part.labels, part.shape, part.mean, part.std)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # Python 3.12 on starting workers
@pytest.mark.parametrize("workers", [0, 2])
def test_a_lazy_part_gives_the_same_stream_as_one_in_memory(workers):
    there = Batches(coded(), 8, seed=4, augment=EVERYTHING)
    assert_same(
        take_from(there, 15), take_from(Batches(lazy(coded()), 8, seed=4, augment=EVERYTHING, workers=workers), 15)
    )


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_lazy_streams_resume_with_other_workers_and_random_transforms():
    train = load(Jittered(40), hold_out=0).train
    assert isinstance(train, LazyImages)
    whole = Batches(train, 8, seed=2, augment=CIFAR, workers=0)
    take_from(whole, 7)
    state = saved(whole.state_dict())
    torch.manual_seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    rest = take_from(whole, 8)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    again = Batches(train, 8, seed=9, augment=CIFAR, workers=2)
    take_from(again, 2)  # leaves batches under way, which must not come out later
    again.load_state_dict(state)
    assert_same(rest, take_from(again, 8))
    assert not torch.equal(rest[0][0], rest[5][0])


def test_the_workers_of_a_stream_in_a_reference_cycle_end_at_once():
    """As those of a training do: torch would wait five seconds for each."""
    cycle = [Batches(lazy(coded()), 8, workers=2)]
    next(cycle[0])
    cycle.append(cycle)
    started = time.monotonic()
    del cycle
    gc.collect()
    assert time.monotonic() - started < 4


def test_lazy_parts_split_like_others():
    part = load(Pictures(20), hold_out=0).train
    one, two = split(lazy(part), 0.5, seed=1)
    in_memory, _ = split(part, 0.5, seed=1)
    assert one.indices.tolist() == in_memory.indices.tolist()
    assert_same(take_from(Batches(one, 5, workers=0), 4), take_from(Batches(in_memory, 5), 4))
    assert len(two) == 10


def test_nothing_is_augmented_by_default():
    part = coded(10)
    x, _ = next(Batches(part, 10, shuffle=False, augment=NONE))
    torch.testing.assert_close(x, part.images.float())
