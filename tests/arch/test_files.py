"""Files that are there as a whole or not at all."""

import os
import stat

import pytest

from idarts.errors import InputError
from idarts.files import write_whole


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_has_the_rights_that_the_user_gives_new_files(mask, tmp_path):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "a.txt", b"a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)  # a file cannot take the place of a folder
    with pytest.raises(InputError, match=f"cannot write {target}: "):
        write_whole(target, b"a")
    with pytest.raises(InputError, match=r"cannot write .*/none/a.txt: No such file or directory"):
        write_whole(tmp_path / "none" / "a.txt", b"a")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
