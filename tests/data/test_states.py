"""Is a file still what it was? Every kind of change is seen; a file that did not change is not opened."""

import os
import time

import pytest

from jumbo_bo.data.states import RACY, look, look_again


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "old.csv"
    path.write_text("x,value\n0.5,1.0\n")
    return path


def settled(path):
    """As it is seen long after it was written."""
    (state,) = look([path])
    return state._replace(seen=state.seen + 2 * RACY)


def test_an_unchanged_file_is_not_opened(file):
    known = settled(file)._replace(digest="that of another content, which only who opens the file could tell")
    assert look_again([known], [file]) == (known,)


def test_a_file_that_was_touched_is_opened_and_found_to_be_the_same(file):
    known = settled(file)
    os.utime(file, (1.0, 2.0))
    (now,) = look_again([known], [file])
    assert now.digest == known.digest
    assert now.stamp != known.stamp
    assert look_again([now._replace(seen=time.time_ns() + 2 * RACY)], [file]) is not None


@pytest.mark.parametrize("text", ["x,value\n0.5,1.0\n0.6,2.0\n", "x,value\n0.5,9.0\n", ""])
def test_other_content(file, text):
    known = settled(file)
    file.write_text(text)
    assert look_again([known], [file]) is None


def test_other_content_of_the_same_size_and_time(file):
    known, before = settled(file), file.stat()
    file.write_text("x,value\n0.5,9.0\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert look_again([known], [file]) is None


def test_another_file_in_its_place(file):
    known = settled(file)
    other = file.with_name("other")
    other.write_text("x,value\n0.5,9.0\n")
    os.replace(other, file)
    assert look_again([known], [file]) is None


def test_a_change_within_the_same_tick_of_the_clock(file):
    """Its size, inode and times are those of before: only the content tells."""
    (known,) = look([file])
    same_stamp = known._replace(digest="of what was there when it was read, a moment before it was written again")
    assert look_again([same_stamp], [file]) is None


def test_a_new_file_and_one_that_is_gone(file):
    other = file.with_name("more.csv")
    other.write_text("x,value\n")
    known = [settled(file), settled(other)]
    assert look_again(known, [file, other]) is not None
    assert look_again(known[:1], [file, other]) is None
    assert look_again(known, [file]) is None
    other.unlink()
    with pytest.raises(FileNotFoundError):
        look_again(known, [file, other])
