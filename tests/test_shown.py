"""What is quoted from input is short, safe to show and without secrets; what is opened cannot keep us waiting."""

from __future__ import annotations

import io
import os
import time
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from jumbo_bo.errors import LONGEST, InputError, MissingFile, UserError, brief, escaped, masked, printable
from jumbo_bo.inputs import MOST_LEVELS, check_regular, from_json, levels, text_of
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.waiting import waiting
from waiting import wait_for

SECRET = "hunter2"


@pytest.mark.parametrize("kind", [UserError, InputError, MissingFile])
def test_a_message_is_cut_in_its_middle(kind: type[UserError]) -> None:
    text = str(kind("runs.csv: the columns are " + "x" * 25_000 + "; pass objective="))
    assert len(text) < LONGEST + 10
    assert text.startswith("runs.csv: the columns are ")
    assert text.endswith("; pass objective=")
    assert str(kind("short")) == "short"


@pytest.mark.parametrize("bad", ["\x1b[2J", "\x07", "\r", "\x9b31m", "\u202e", "\ud800", "\x7f", "\x00"])
def test_a_message_cannot_steer_a_terminal(bad: str) -> None:
    text = str(InputError(f"no column 'a{bad}b'\nnext line"))
    assert "\n" in text
    assert all(c.isprintable() or c == "\n" for c in text)
    text.encode()
    assert printable("naïve \u00a0 日本\t") == "naïve \u00a0 日本\\t"


def test_json_with_escapes_says_the_same() -> None:
    text = escaped('{"a": "x\x9b\u202e\x7f"}')
    assert text.isascii()
    assert from_json(text) == {"a": "x\x9b\u202e\x7f"}


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql+psycopg://me:{SECRET}@host:5432/db",
        f"postgresql://me:pa@{SECRET}@host/db",
        f"mysql://host/db?user=me&password={SECRET}",
        f"postgresql://host/db?sslPassword={SECRET}&user=me",
        f"https://host/runs.csv?X-Amz-Signature={SECRET}",
        f"https://host/runs.csv?sig={SECRET}",
        f"http://me:{SECRET}",
    ],
)
def test_secrets_of_an_address_are_never_shown(address: str) -> None:
    for text in (masked(address), str(UserError(f"cannot use {address}; check it")), brief(address), brief([address])):
        assert SECRET not in text
        assert "***" in text
    assert str(UserError(f"cannot use {address}; check it")).endswith("check it") or "@" not in address


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8080/dashboard", "sqlite:///a:b@c.db", "http://[::1]:80/x", "ray://host:10001"],
)
def test_addresses_without_secrets_stay_as_they_are(address: str) -> None:
    assert masked(f"see {address} (Ctrl-C to stop)") == f"see {address} (Ctrl-C to stop)"


def test_values_that_python_cannot_spell_can_be_quoted() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert brief(10**5000) == "a value of type int that is too large to show"
    assert "too large to show" in brief(deep)
    assert len(brief("x" * 1000)) == 80


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "more than 100 levels"),
        ('{"a":' * 100_000, "more than 100 levels"),
        ("1" * 5000, "more digits than can be read"),
        (r'"\ud800"', "half of a pair of surrogates"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_what_is_no_json_is_said_in_few_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        from_json(text)
    assert len(str(caught.value)) < 100


def test_brackets_inside_strings_are_no_levels() -> None:
    assert levels('{"a": "[[[", "b\\"[": [1]}') == 2
    assert from_json('["' + "[" * 500 + '"]') == ["[" * 500]
    assert from_json("[" * MOST_LEVELS + "]" * MOST_LEVELS) != 1
    start = time.process_time()
    levels('"' + '\\"' * 200_000)  # never ends; looked at once, not once for each quote
    assert time.process_time() - start < 5


def test_pipes_folders_and_other_encodings_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"\xff")
    for name, message in {"pipe": "pipe or a device", "latin": "not text in UTF-8", ".": "is a folder"}.items():
        with pytest.raises(InputError, match=message):
            text_of(tmp_path / name)
    with pytest.raises(InputError, match="pipe or a device"):
        check_regular(Path("/dev/null"))
    with pytest.raises(MissingFile, match="does not exist"):
        text_of(tmp_path / "nothing")
    with pytest.raises(InputError, match="cannot be used"):
        check_regular(tmp_path / ("x" * 5000))


def test_a_long_wait_says_for_what_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumbo_bo.waiting.SHORT", 0.02)
    said = io.StringIO()
    with redirect_stderr(said), waiting(f"http://me:{SECRET}@host\x1b[1m", 600, "then it ends"):
        wait_for(lambda: said.getvalue().endswith("\n"))
    assert said.getvalue() == "Waiting for http://me:***@host\\x1b[1m (at most 10 min, then it ends) ...\n"


def test_a_short_wait_is_silent() -> None:
    said = io.StringIO()
    with redirect_stderr(said), waiting("nothing", 5):
        pass
    assert said.getvalue() == ""


def test_a_number_beyond_all_floats_is_a_failure_like_infinity() -> None:
    from optuna.distributions import FloatDistribution

    optimizer = Optimizer(Space({"x": FloatDistribution(0, 1)}), method="gp-ucb")
    for value in (10**400, -(10**5000)):
        optimizer.tell({"x": 0.5}, value)
    assert [str(value) for _, value in optimizer.told] == ["nan", "nan"]
    with pytest.raises(TypeError, match="expected a number") as caught:
        optimizer.tell({"x": 0.5}, [10**5000])  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
    with pytest.raises(InputError, match="bounds are"):
        Optimizer(Space({"x": FloatDistribution(0, 1)}), bounds=(0, 10**5000))
