"""A person's mistake is one line; a mistake of ours keeps its traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from optuna.distributions import FloatDistribution
from typer.testing import CliRunner

from jumbo_bo import History
from jumbo_bo.cli import app
from jumbo_bo.data.readers import read_history
from jumbo_bo.errors import InputError, MissingFile, UserError
from jumbo_bo.space.space import Space

STUDY = """
name = "small"
method = "gp-ucb"
[space]
x = { type = "float", low = 0.0, high = 1.0 }
"""
OLD = "loss,x\n0.5,0.13\n0.25,0.97\n0.75,0.31\n"
TOLD = "".join(f'{{"params": {{"x": {x}}}, "value": {y}}}\n' for x, y in [(0.1, 0.5), (0.3, 0.1), (0.9, 0.4)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JUMBO_DEBUG", raising=False)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "old.csv").write_text(OLD)
    return tmp_path


def history(entry: str) -> str:
    return f"{STUDY}[[history]]\n{entry}\n"


@pytest.mark.parametrize(
    ("study", "arguments", "expected"),
    [
        (STUDY, "ask nothing.toml", "nothing.toml does not exist"),
        (STUDY, "status study.toml", "study.db does not exist"),
        (history('files = "old.csv"'), "ask study.toml", "old.csv has no column 'value'"),
        (history('files = "new*.csv"'), "ask study.toml", "no files match"),
        (history('files = "odd.csv"\nobjective = "loss"\non_bad_rows = "error"'), "import study.toml", "drop the row"),
        (history('wandb = "latin.json"'), "import study.toml", "can't decode byte 0xff"),
        (STUDY, "import new.csv", "new.csv does not exist"),
        (STUDY, "import old.xyz", "old.xyz"),
        (STUDY, "tell study.toml 0 much", "expected a number"),
        (STUDY, "bench fcnet-tt --methods nothing", "no method 'nothing'"),
        (STUDY, "bench report fcnet-tt --out nowhere", "no finished runs"),
        (STUDY, "run study.toml", "does not say how to evaluate a trial"),
        (STUDY, "demo --storage sqlite:////dev/null/demo.db", "cannot use the storage"),
    ],
)
def test_a_mistake_is_one_line(folder: Path, study: str, arguments: str, expected: str) -> None:
    (folder / "study.toml").write_text(study)
    (folder / "latin.json").write_bytes(b'[{"x": "\xff"}]')
    (folder / "old.xyz").touch()
    (folder / "odd.csv").write_text(f"{OLD}0.5,auto\n")
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert expected in " ".join(result.stderr.replace("│", "").split())
    if result.exit_code == 1:
        assert result.stderr.startswith(f"jumbo {arguments.split()[0]}: ")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
@pytest.mark.parametrize("arguments", ["init old.csv --force --output /dev/full", "init --force --output /dev/full"])
def test_a_full_disk_is_one_line(folder: Path, arguments: str) -> None:
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code == 1
    assert result.stderr == "jumbo init: /dev/full cannot be used: No space left on device\n"


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    result = CliRunner().invoke(app, ["tell", "study.toml"], input=b'{"trial": \xff}\n')
    assert result.exit_code == 1
    assert result.stderr == "jumbo tell: standard input is not text in UTF-8; send JSON lines\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("study.column.nice", "init old.csv --force"),
        ("data.stream.Collector.read", "import old.csv"),
        ("models.gp.Evidence.__call__", "ask study.toml"),
        ("space.space.Space.decode", "ask study.toml"),
    ],
)
@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError, ValueError, TypeError])
def test_a_bug_keeps_its_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: str, error: type[Exception]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error("deep inside")

    told = CliRunner().invoke(app, ["tell", "study.toml"], input=TOLD)  # so that there is something to fit
    assert told.exit_code == 0, told.output
    monkeypatch.setattr(f"jumbo_bo.{name}", broken)
    result = CliRunner().invoke(app, arguments.split())
    assert type(result.exception) is error, result.output


def test_the_traceback_is_shown_plainly(folder: Path) -> None:
    code = (
        "import sys, jumbo_bo.study.column as c; c.nice = lambda *_: {}['a bug'];"
        "sys.argv = ['jumbo', 'init', 'old.csv', '--force']; from jumbo_bo.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert done.stderr.endswith("KeyError: 'a bug'\n")
    assert "jumbo init:" not in done.stderr


def test_programs_catch_what_they_always_caught(folder: Path) -> None:
    with pytest.raises(ValueError, match="at least one parameter") as wrong:
        Space({})
    assert isinstance(wrong.value, InputError)
    assert isinstance(wrong.value, UserError)
    with pytest.raises(FileNotFoundError, match=r"new\.csv does not exist") as missing:
        read_history("new.csv", Space({"x": FloatDistribution(0, 1)}))
    assert isinstance(missing.value, MissingFile)
    assert isinstance(missing.value, UserError)
    assert str(missing.value).startswith("new.csv")
    with pytest.raises(ValueError, match="nothing to combine"):
        History.combine()
