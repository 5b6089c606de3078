"""[[history]] of study.toml: what is refused, and the old runs of every kind of source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import polars as pl
import pytest
from optuna.distributions import FloatDistribution
from study_texts import SMALL, SPACE, error, write

from jumbo_bo.data import trackers
from jumbo_bo.data.history import History
from jumbo_bo.errors import UserError
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import load


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('task = "a"', ["history has none of files, optuna, mlflow, wandb, ray"]),
        ('file = "a.csv"', ["history has an unknown key 'file'", "did you mean 'files'?"]),
        ('files = "a.csv"\nray = "b"', ["history has files and ray of", "a [[history]] for each"]),
        ('files = "a.csv"\nobjectiv = "y"', ["unknown key 'objectiv'", "did you mean 'objective'?"]),
        ("files = []", ["history.files is []", "text or a list of strings"]),
        ('optuna = ["a", "b"]', ["history.optuna is", "text in quotes"]),
        ('optuna = "sqlite:///a.db"\nobjective = "y"', ["unknown key 'objective'", "studies"]),
        ('files = "a.csv"\nstudies = ["y"]', ["unknown key 'studies'"]),
        ('files = "a.csv"\ndirection = "max"', ["history.direction is 'max'", "did you mean 'maximize'?"]),
        ('files = "a.csv"\non_bad_rows = "stop"', ["history.on_bad_rows is 'stop'", '"skip", "error"']),
        ('files = "a.csv"\ntask = 3', ["history.task is 3", "text"]),
        ('ray = "a"\nwhich = "first"', ["history.which is 'first'", '"last", "best"']),
        ('files = "a.csv"\nrename = { a = "y" }', ["history.rename.a is 'y'", "a parameter (x, value)"]),
        ('files = "a.csv"\nrename = { x = "lr" }', ["history.rename.x is 'lr'", 'other way round: lr = "x"']),
        ('files = "a.csv"\nfill = { y = 1 }', ["history.fill has an unknown key 'y'", "x"]),
        ('files = "a.csv"\nfill = { x = 7 }', ["history.fill.x is 7", "a number in [0, 1]"]),
        ('files = "a.csv"\n[[history]]\nfile = "b"', ["history 2 has an unknown key 'file'"]),
    ],
)
def test_mistakes_are_named_with_their_fix(tmp_path: Path, text: str, expected: list[str]) -> None:
    message = error(tmp_path, f"{SMALL}[[history]]\n{text}\n")
    assert [part for part in expected if part not in message] == [], message


def old_runs(folder: Path) -> None:
    (folder / "runs").mkdir()
    frame = pl.DataFrame({"x": [0.1, 0.5, 0.9], "value": [3.0, 1.0, 2.0]})
    frame.write_csv(folder / "runs" / "a.csv")
    frame.rename({"x": "z"}).write_csv(folder / "runs" / "b.csv")
    for name in ("first", "second"):
        for storage in (f"sqlite:///{folder}/old.db", journal(folder)):
            study = optuna.create_study(study_name=name, storage=storage, direction="maximize")
            for x in (0.2, 0.4, 0.8):
                study.add_trial(
                    optuna.trial.create_trial(params={"x": x}, distributions={"x": FloatDistribution(0, 1)}, value=x)
                )


def journal(folder: Path) -> optuna.storages.JournalStorage:
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "old.journal")))


def history(folder: Path, *entries: str) -> History | None:
    return load(write(folder, SMALL + "".join(f"[[history]]\n{entry}\n" for entry in entries))).history()


def test_old_runs_of_all_sources_are_combined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "with [brackets]"
    folder.mkdir()
    old_runs(folder)
    monkeypatch.chdir(tmp_path)
    found = history(
        folder,
        'files = "runs/*.csv"\nrename = { z = "x" }\ndirection = "maximize"',
        'optuna = "sqlite:///old.db"\nstudies = "second"',
        'optuna = "old.journal"\nstudies = ["first"]',
    )
    assert found is not None
    assert {t.name: t.y.tolist() for t in found.tasks} == {
        "a": [3.0, 1.0, 2.0],
        "b": [3.0, 1.0, 2.0],
        "first": [0.2, 0.4, 0.8],
        "second": [0.2, 0.4, 0.8],
    }
    assert [r.source for r in found.reports][:2] == [f"{folder.name}/runs/a.csv", f"{folder.name}/runs/b.csv"]


def test_direction_of_old_files_is_the_study_s_unless_told(tmp_path: Path) -> None:
    old_runs(tmp_path)
    study = load(write(tmp_path, f'direction = "maximize"\n{SMALL}[[history]]\nfiles = "runs/a.csv"\n'))
    found = study.history()
    assert found is not None
    assert found.tasks[0].y.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (['files = "runs/c*.csv"'], ["study.toml, history (files): no files match"]),
        (['files = "runs/b.csv"'], ["runs/b.csv: none of the parameters ['x'] is a column; it has ['z', 'value']"]),
        (['files = "runs/a.csv"\nobjective = "vlaue"'], ["has no column 'vlaue'; did you mean 'value'?"]),
        (['files = "runs/a.csv"', 'optuna = "sqlite:///new.db"'], ["history 2 (optuna):", "new.db does not exist"]),
        (['optuna = "new.journal"'], ["history (optuna):", "new.journal does not exist"]),
        (['optuna = "old.db"'], ["history (optuna):", "sqlite:///"]),
        (['optuna = "sqlite:///old.db"\nstudies = "frist"'], ["no study 'frist'; did you mean 'first'?"]),
        (
            [f'optuna = "sqlite:///old.db"\ntarget = "{name}"' for name in ("first", "second")],
            ["different targets ['first', 'second']"],
        ),
    ],
)
def test_old_runs_that_do_not_fit(tmp_path: Path, entries: list[str], expected: list[str]) -> None:
    old_runs(tmp_path)
    with pytest.raises(UserError) as caught:
        history(tmp_path, *entries)
    assert [part for part in expected if part not in str(caught.value)] == [], str(caught.value)
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("entry", "reader", "where", "options"),
    [
        ('mlflow = "sqlite:///m.db"\nexperiments = "e"', "from_mlflow", "sqlite:///{}/m.db", {"experiments": ["e"]}),
        ('mlflow = "mlruns"\nobjective = "loss"', "from_mlflow", "{}/mlruns", {"objective": "loss"}),
        ('mlflow = "http://host:5000"', "from_mlflow", "http://host:5000", {}),
        ('wandb = ["export.csv", "/w"]\ntask = "group"', "from_wandb", ["{}/export.csv", "/w"], {"task": "group"}),
        ('ray = "tune/*"\nwhich = "best"', "from_ray", ["{}/tune/*"], {"which": "best"}),
    ],
)
def test_trackers_get_their_place_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, reader: str, where: Any, options: dict[str, Any]
) -> None:
    calls: list[tuple[Any, Space, dict[str, Any]]] = []

    def read(path: Any, space: Space, **given: Any) -> History:
        calls.append((path, space, given))
        return History.empty(space)

    monkeypatch.setattr(trackers, reader, read)
    history(tmp_path, entry)
    place = where.format(tmp_path) if isinstance(where, str) else [w.format(tmp_path) for w in where]
    assert calls == [(place, SPACE, {"direction": "minimize"} | options)]
