"""Old runs in files are read once, and again after every kind of change; the suggestions are the same to the bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from jumbo_bo.data import states
from jumbo_bo.data.history import History
from jumbo_bo.errors import UserError
from jumbo_bo.known import Remembered
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.study.study_file import StudyFile, load

STUDY = """
name = "kept"
method = "METHOD"
[space]
x = { type = "float", low = 0.0, high = 1.0 }
n = { type = "int", low = 1, high = 9 }
[[history]]
files = "runs/*.csv"
target = "now"
"""


def write_runs(path: Path, best: float, rows: int = 25) -> None:
    rng = np.random.default_rng(len(path.stem))
    x, n = rng.random(rows).round(6), rng.integers(1, 10, rows)
    lines = [f"{a:.6f},{b},{(a - best) ** 2 + 0.01 * b:.6f}" for a, b in zip(x, n, strict=True)]
    path.write_text("\n".join(["x,n,value", *lines]) + "\n")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFile:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()
    for name, best in (("a", 0.2), ("bb", 0.3), ("now", 0.25)):
        write_runs(tmp_path / "runs" / f"{name}.csv", best, 5 if name == "now" else 25)
    (tmp_path / "study.toml").write_text(STUDY.replace("METHOD", "rgpe"))
    return load(tmp_path / "study.toml")


def built(study: StudyFile, whole: bool = False) -> Optimizer:
    return build_optimizer(study, 20, lambda text: None, whole)


def was_read(optimizer: Optimizer) -> bool:
    return isinstance(optimizer.history, History)


def told(optimizer: Optimizer) -> Optimizer:
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x, "n": 3}, (x - 0.27) ** 2)
    return optimizer


@pytest.mark.parametrize("method", ["rgpe", "empirical-gp", "gp-ucb", "jumbo-mixture"])
def test_read_once_and_the_same_to_the_bit(study: StudyFile, method: str) -> None:
    study = replace(study, method=method)
    first, second = built(study), built(study)
    assert was_read(first)
    assert isinstance(second.history, Remembered)
    assert second.history.tasks == ("a", "bb")
    for optimizer in (first, second):
        optimizer.ask()
        told(optimizer).ask_many(2)
    assert [s.params for s in first.suggestions] == [s.params for s in second.suggestions]
    assert [s.explanation.to_json() for s in first.suggestions] == [s.explanation.to_json() for s in second.suggestions]
    again = second.restarted(seed=study.seed)
    assert told(again).ask(running=[]).params == told(built(study)).ask(running=[]).params


def test_whoever_needs_all_rows_gets_them(study: StudyFile) -> None:
    built(study)
    assert was_read(built(study, whole=True))


def rewritten(runs: Path) -> None:
    write_runs(runs / "a.csv", 0.7)


def rewritten_in_disguise(runs: Path) -> None:
    """Of the same size, in the same file, with the same time."""
    before = (runs / "a.csv").stat()
    rewritten(runs)
    os.utime(runs / "a.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (runs / "a.csv").stat().st_size == before.st_size


def row_added(runs: Path) -> None:
    with (runs / "a.csv").open("a") as file:
        file.write("0.5,5,0.1\n")


def file_added(runs: Path) -> None:
    write_runs(runs / "more.csv", 0.4)


def file_removed(runs: Path) -> None:
    (runs / "bb.csv").unlink()


def file_renamed(runs: Path) -> None:
    (runs / "bb.csv").rename(runs / "other.csv")


@pytest.mark.parametrize("racy", [False, True])
@pytest.mark.parametrize(
    "change", [rewritten, rewritten_in_disguise, row_added, file_added, file_removed, file_renamed]
)
def test_a_change_of_the_files_is_seen(
    study: StudyFile, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], racy: bool
) -> None:
    """Also when the files were old enough, when they were read, to be trusted by their times."""
    monkeypatch.setattr(states, "RACY", 2_000_000_000 if racy else -(10**18))
    built(study)
    assert not was_read(built(study))
    change(study.folder / "runs")
    changed = built(study)
    assert was_read(changed)
    assert not was_read(built(study)), "kept again"
    (study.folder / "cache").rename(study.folder / "elsewhere")
    fresh = built(study)
    assert changed.ask().explanation.to_json() == fresh.ask().explanation.to_json()


def test_files_that_were_only_touched_are_not_read_again(study: StudyFile) -> None:
    built(study)
    for path in (study.folder / "runs").iterdir():
        os.utime(path, (1.0, 2.0))
    assert not was_read(built(study))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('target = "now"', ""),
        ('target = "now"', 'target = "now"\ndirection = "maximize"'),
        ('name = "kept"', 'name = "kept"\ndirection = "maximize"'),
        ('name = "kept"', 'name = "kept"\nseed = 1'),
        ('"rgpe"', '"empirical-gp"'),
        ("high = 9", "high = 10"),
        ('"runs/*.csv"', '["runs/a.csv", "runs/now.csv"]'),
    ],
)
def test_a_change_of_the_study_file_is_seen(study: StudyFile, old: str, new: str) -> None:
    built(study)
    text = study.path.read_text()
    assert old in text
    study.path.write_text(text.replace(old, new))
    assert was_read(built(load(study.path)))


def test_what_is_missing_or_damaged_in_the_cache_is_made_again(study: StudyFile) -> None:
    built(study)
    cache = study.folder / "cache"
    (kept,), (net,) = cache.glob("*.runs"), cache.glob("*.safetensors")
    net.unlink()
    assert was_read(built(study))
    assert not was_read(built(study))
    kept.write_bytes(kept.read_bytes()[:-20])
    assert was_read(built(study))
    assert not was_read(built(study))


def test_a_file_that_is_gone_is_named(study: StudyFile) -> None:
    text = study.path.read_text().replace('"runs/*.csv"', '["runs/a.csv", "runs/bb.csv"]').replace('target = "now"', "")
    study.path.write_text(text)
    study = load(study.path)
    built(study)
    (study.folder / "runs" / "bb.csv").unlink()
    with pytest.raises(UserError, match=r"bb\.csv does not exist"):
        built(study)


def test_old_runs_in_a_database_file(study: StudyFile) -> None:
    address = f"sqlite:///{study.folder}/old.db"
    old = optuna.create_study(storage=address, study_name="old")
    spread = {"x": FloatDistribution(0, 1)}

    def add(x: float) -> None:
        old.add_trial(create_trial(params={"x": x}, distributions=dict(spread), value=(x - 0.3) ** 2))

    for x in np.linspace(0, 1, 12):
        add(float(x))
    text = study.path.read_text().split("[[history]]")[0].replace('n = { type = "int", low = 1, high = 9 }\n', "")
    study.path.write_text(text + '[[history]]\noptuna = "sqlite:///old.db"\n')
    study = load(study.path)
    built(study)
    assert not was_read(built(study))
    add(0.31)
    assert was_read(built(study))


def test_old_runs_elsewhere_are_read_each_time(study: StudyFile) -> None:
    """A server, or folders of a tracker: nobody can tell from outside whether they have changed."""
    text = study.path.read_text()
    study.path.write_text(text + '[[history]]\noptuna = "postgresql+psycopg://nobody@localhost/none"\n')
    assert load(study.path).old_files() == ()
