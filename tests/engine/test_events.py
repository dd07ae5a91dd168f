"""Events as TensorBoard itself reads them: whole, resumed with every step once, and after a kill in mid-record."""

import math
import struct
from dataclasses import asdict

import pytest

from idarts import InputError
from idarts.engine.events import TAGS, EventWriter, _checksum, watch_events
from idarts.searching import Round


def files(folder):
    return sorted(folder.glob("*tfevents*"))


def steps(path):
    """Of all scalars in one file, by TensorBoard's own reader, which checks every checksum."""
    loading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="needs idarts[tensorboard]"
    )
    return [event.step for event in loading.EventFileLoader(str(path)).Load() if event.summary.value]


def read(folder):
    """tag → [(step, value)], over all files of the folder."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs idarts[tensorboard]"
    )
    found = accumulator.EventAccumulator(str(folder), size_guidance={accumulator.TENSORS: 0, accumulator.SCALARS: 0})
    found.Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def write(folder, *steps, scale=1.0):
    with EventWriter(folder) as writer:
        for step in steps:
            writer.scalar("loss", scale * step, step)


def test_the_checksum_is_castagnolis():
    masked = struct.unpack("<I", _checksum(b"123456789"))[0]  # the check value that every CRC's definition comes with
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert (rotated >> 17 | rotated << 15) & 0xFFFFFFFF == 0xE3069283


def test_scalars_come_back(tmp_path):
    with EventWriter(tmp_path / "made" / "here") as writer:
        writer.scalar("loss/train", 0.5, 1)
        writer.scalar("loss/train", -2.25, 300)
        writer.scalar("größe", 3, 2**40)
        writer.scalar("x" * 200, 1.0, 2**40)
    found = read(tmp_path / "made" / "here")
    assert found == {
        "loss/train": [(1, 0.5), (300, -2.25)],
        "größe": [(2**40, 3.0)],
        "x" * 200: [(2**40, 1.0)],
    }


def test_numbers_that_are_none_or_too_large(tmp_path):
    with EventWriter(tmp_path) as writer:
        for step, value in enumerate((math.nan, math.inf, 1e300, -1e300)):
            writer.scalar("value", value, step)
    values = [value for _, value in read(tmp_path)["value"]]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, math.inf, -math.inf]


def test_all_numbers_of_a_round_are_written(tmp_path):
    full = Round(7, 2.5, 2.25, 0.5, 0.75, 0.125, 40.0, 0.25, 0.375, 1.5, 0.0625, 0.875, 0.03125, 5.5, 6.5)
    with watch_events(tmp_path) as watch:
        watch(full, None)
        watch(Round(8, 2.0, math.nan, 0.5, 0.75, 0.125, 45.0), None)  # skipped
    found = read(tmp_path)
    expected = {TAGS.get(name, f"run/{name}"): value for name, value in asdict(full).items() if name != "number"}
    assert {tag: seen[0] for tag, seen in found.items()} == {tag: (7, value) for tag, value in expected.items()}
    assert found["loss/train"][1] == (8, 2.0)
    assert len(found["hypergradient/norm"]) == 1


def test_a_resumed_run_has_every_step_once(tmp_path):
    write(tmp_path, *range(1, 8))
    write(tmp_path, *range(5, 10), scale=10.0)  # killed after round 7, resumed from a checkpoint of round 4
    write(tmp_path, *range(9, 12), scale=100.0)
    first, second, third = files(tmp_path)
    assert [steps(first), steps(second), steps(third)] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11]]
    values = [1, 2, 3, 4, 50, 60, 70, 80, 900, 1000, 1100]
    assert read(tmp_path)["loss"] == [(step, float(value)) for step, value in enumerate(values, start=1)]


def test_a_reader_that_is_open_forgets_what_is_taken_back(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs idarts[tensorboard]"
    )
    write(tmp_path, 1, 2, 3)
    found = accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    write(tmp_path, 2, 3, 4)
    found.Reload()
    assert [event.step for event in found.Scalars("loss")] == [1, 2, 3, 4]


@pytest.mark.parametrize("missing", [1, 10, 30, 42])
def test_a_record_cut_short_by_a_kill_goes(tmp_path, missing):
    write(tmp_path, 1, 2, 300)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-missing])
    write(tmp_path, 300, 301)
    assert [step for step, _ in read(tmp_path)["loss"]] == [1, 2, 300, 301]


def test_a_damaged_file_is_kept_up_to_the_damage(tmp_path):
    write(tmp_path, 1, 2)
    (path,) = files(tmp_path)
    with path.open("ab") as file:
        file.write(bytes(100))  # what a power cut may leave
    write(tmp_path, 3)
    assert [step for step, _ in read(tmp_path)["loss"]] == [1, 2, 3]


def test_beginning_anew_leaves_nothing_old_and_no_file_of_others_is_touched(tmp_path):
    other = tmp_path / "events.out.tfevents.1.other"
    other.write_bytes(b"not ours")
    write(tmp_path, 1, 2)
    (old,) = set(files(tmp_path)) - {other}
    write(tmp_path, 1)
    assert not old.exists()
    assert other.read_bytes() == b"not ours"
    assert len(files(tmp_path)) == 2


def test_without_a_scalar_there_is_no_file(tmp_path):
    with watch_events(tmp_path / "events"):
        pass
    assert not (tmp_path / "events").exists()


def test_what_was_written_is_there_before_the_end(tmp_path):
    writer = EventWriter(tmp_path)
    writer.scalar("loss", 1.0, 1)
    assert read(tmp_path)["loss"] == [(1, 1.0)]
    writer.close()
    writer.close()


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="step is -1"):
        EventWriter(tmp_path).scalar("loss", 1.0, -1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no events can be written"):
        EventWriter(tmp_path / "file" / "events").scalar("loss", 1.0, 1)
