"""study.toml with numbers and nesting that nobody expects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from study_texts import SMALL, error, write

from jumbo_bo.errors import UserError
from jumbo_bo.study.study_file import load

HUGE = "1" + "0" * 400
LONG = "1" * 5000
HEX = "0x" + "f" * 5000


@pytest.mark.parametrize("number", [HUGE, LONG, HEX], ids=["400 digits", "5000 digits", "hexadecimal"])
@pytest.mark.parametrize(
    "text",
    [
        'name = "s"\n[space]\nx = {{ type = "float", low = 0.0, high = {} }}\n',
        'name = "s"\n[space]\nx = {{ type = "int", low = 0, high = {} }}\n',
        'name = "s"\n[space]\nx = {{ type = "int", low = 0, high = 9, step = {} }}\n',
        'name = "s"\n[space]\nx = {{ type = "categorical", choices = [1, {}] }}\n',
        "trials = {}\n" + SMALL,
        "seed = {}\n" + SMALL,
        "bounds = [0, {}]\n" + SMALL,
        SMALL + '[objective]\ncommand = ["x"]\ntimeout = {}\n',
        SMALL + "[stop]\ngain = {}\n",
        SMALL + '[[history]]\nfiles = "a.csv"\nfill = {{ x = {} }}\n',
        SMALL + '[[history]]\nfiles = "a.csv"\ntarget = {}\n',
        "direction = {}\n" + SMALL,
    ],
)
def test_huge_numbers_are_refused(tmp_path: Path, text: str, number: str) -> None:
    message = error(tmp_path, text.replace("{{", "{").replace("}}", "}").replace("{}", number))
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize("deep", ["[" * 5000, "{a=" * 5000, "[" * 500 + "]" * 500])
def test_deep_nesting_is_refused(tmp_path: Path, deep: str) -> None:
    message = error(tmp_path, f"direction = {deep}\n{SMALL}")
    assert len(message) < 600


@pytest.mark.parametrize("day", ["2020-13-45", "2020-01-01T25:00:00"])
def test_a_day_that_no_calendar_has_is_refused(tmp_path: Path, day: str) -> None:
    assert "line 1" in error(tmp_path, f"direction = {day}\n{SMALL}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("low = 9007199254740993, high = 9007199255740993, step = 1000000", "2^53"),
        ("low = 0, high = 9223372000000000000, step = 1000000000000", "2^53"),
        ("low = 0, high = 9223372036854775807", "use a larger step or a float"),
    ],
)
def test_whole_numbers_that_a_storage_would_change_are_refused(tmp_path: Path, line: str, message: str) -> None:
    assert message in error(tmp_path, f'name = "s"\n[space]\nx = {{ type = "int", {line} }}\n')


def test_whole_numbers_up_to_there_are_kept_exactly(tmp_path: Path) -> None:
    low, step = 2**53 - 10**12, 10**6
    text = f'name = "s"\n[space]\nx = {{ type = "int", low = {low}, high = {low + 999 * step}, step = {step} }}\n'
    space = load(write(tmp_path, text)).space
    for i in (0, 1, 500, 999):
        params = {"x": low + i * step}
        assert space.decode(space.encode(params)) == params
        assert int(space.distributions["x"].to_internal_repr(params["x"])) == params["x"]


def test_steps_that_no_decimal_can_count_are_refused(tmp_path: Path) -> None:
    text = 'name = "s"\n[space]\nx = { type = "float", low = 0.0, high = 1.7e308, step = 5e-324 }\n'
    assert "space" in error(tmp_path, text)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.toml")
    with pytest.raises(UserError, match="is a pipe or a device"):
        load(tmp_path / "study.toml")


def test_a_password_in_a_broken_file_is_not_shown(tmp_path: Path) -> None:
    for line in ('storage = "postgresql://me:hunter2@host:port/db"', 'storage = "mysql://me:hunter2@host/db?x'):
        assert "hunter2" not in error(tmp_path, f"{line}\n{SMALL}")
