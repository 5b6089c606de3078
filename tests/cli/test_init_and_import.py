"""`jumbo init` and `jumbo import`: what is written, what is shown, messages and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from tables import jumbo, paint, said

from jumbo_bo.cli.template import study_text
from jumbo_bo.space.space import Space
from jumbo_bo.study.old_runs import OldRuns
from jumbo_bo.study.study_file import load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = paint(tmp_path)
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("init", ["jumbo init runs.csv", "--objective", "--minimize", "--maximize", "--force", "Examples"]),
        ("import", ["jumbo import study.toml", "--space-from", "--json", "Examples"]),
    ],
)
def test_help(command: str, expected: list[str]) -> None:
    result = jumbo(command, "--help")
    assert result.exit_code == 0
    assert [text for text in expected if text not in result.output] == []
    assert command in jumbo("--help").output


def test_init_from_tables(folder: Path) -> None:
    result = jumbo("init", *(f"runs/{name}.csv" for name in ("alpha", "beta", "gamma")))
    assert result.exit_code == 0
    for text in ("1e-05 to 0.1 (log)", "16 | 32 | 64 | 256", "an id", "smaller is better", "Wrote study.toml"):
        assert text in said(result)
    for command in ("jumbo import study.toml", "jumbo ask study.toml", "jumbo run study.toml"):
        assert command in result.output
    study = load("study.toml")
    assert study.name == "paint"
    assert study.space == Space(
        {"lr": FloatDistribution(1e-5, 0.1, log=True), "units": CategoricalDistribution((16, 32, 64, 256))}
    )
    assert study.old_runs == (OldRuns("files", ("runs/*.csv",), {"objective": "loss", "direction": "minimize"}),)
    history = study.history()
    assert history is not None
    assert history.n_rows == 180
    text = (folder / "study.toml").read_text()
    assert 'lr = { type = "float", low = 1e-5, high = 0.1, log = true }' in text
    assert "#   run_id: it looks like an id" in text
    assert max(map(len, text.splitlines())) <= 120


def test_some_files_of_a_folder_are_listed_and_found_from_elsewhere(folder: Path) -> None:
    (folder / "new").mkdir()
    result = jumbo("init", "runs/alpha.csv", str(folder / "runs/beta.csv"), "--output", "new/s.toml", "--maximize")
    assert result.exit_code == 0
    study = load("new/s.toml")
    assert (study.direction, study.name) == ("maximize", "s")
    assert study.old_runs[0].where == ("../runs/alpha.csv", str(folder / "runs/beta.csv"))
    history = study.history()
    assert history is not None
    assert [t.name for t in history.tasks] == ["alpha", "beta"]


def test_options_of_init(folder: Path) -> None:
    frame = pl.DataFrame({"a": np.linspace(0, 1, 40), "b": np.linspace(0, 1, 40) ** 2, "plant": ["n", "s"] * 20})
    frame.with_columns(strength=pl.col("a") - pl.col("b")).write_parquet("lab.parquet")
    asked = ("--objective", "strength", "--maximize", "--task", "plant", "--ignore", "b")
    assert jumbo("init", "lab.parquet", *asked).exit_code == 0
    study = load("study.toml")
    assert list(study.space.names) == ["a"]
    assert study.name == "lab"
    columns = {"objective": "strength", "direction": "maximize", "task": "plant"}
    assert study.old_runs == (OldRuns("files", ("lab.parquet",), columns),)


def test_a_column_kept_as_a_parameter(folder: Path) -> None:
    assert jumbo("init", "runs/alpha.csv", "--keep", "run_id").exit_code == 0
    assert load("study.toml").space.distributions["run_id"] == IntDistribution(0, 59)


def test_nothing_is_overwritten_unless_forced(folder: Path) -> None:
    (folder / "study.toml").write_text("mine")
    result = jumbo("init", "runs/alpha.csv")
    assert result.exit_code == 1
    assert "study.toml exists; pass --force" in said(result)
    assert (folder / "study.toml").read_text() == "mine"
    assert jumbo("init", "runs/alpha.csv", "--force").exit_code == 0
    assert load("study.toml").old_runs


def test_a_failed_guess_leaves_the_old_file(folder: Path) -> None:
    (folder / "study.toml").write_text("mine")
    assert jumbo("init", "runs/alpha.csv", "--objective", "nothing", "--force").exit_code == 1
    assert (folder / "study.toml").read_text() == "mine"


def test_init_without_old_runs(folder: Path) -> None:
    result = jumbo("init")
    assert result.exit_code == 0
    assert "an example to fill in" in result.output
    study = load("study.toml")
    assert (study.old_runs, study.job.command) == ((), ())
    assert list(study.space.names) == ["lr", "units", "activation"]
    assert jumbo("init", "--maximize", "--force").exit_code == 0
    assert load("study.toml").direction == "maximize"


@pytest.mark.parametrize("files", [(), ("runs/alpha.csv",)])
def test_options_commented_out_are_right_when_switched_on(folder: Path, files: tuple[str, ...]) -> None:
    jumbo("init", *files)
    text = (folder / "study.toml").read_text()
    switched = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.M)
    (folder / "study.toml").write_text(switched.replace("step = ... (", "# step = ("))
    study = load("study.toml")
    assert set(study.old_runs[0].options) == {
        "objective",
        "direction",
        "task",
        "rename",
        "fill",
        "target",
        "on_bad_rows",
    }
    assert (study.job.command, study.job.input, study.job.workers) == (("python", "train.py"), "json", 2)
    assert study.method == "jumbo-mixture"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["init", "none.csv"], 1, "none.csv does not exist"),
        (["init", "runs/*.tsv"], 1, "no files match"),
        (["init", "runs"], 1, "is a folder; pass a glob"),
        (["init", "runs/alpha.csv", "--objective", "los"], 1, "did you mean 'loss'?"),
        (["init", "runs/alpha.csv", "--output", "no/study.toml"], 1, "does not exist; create it"),
        (["init", "--objective", "loss"], 2, "pass a table"),
        (["init", "--frobnicate"], 2, "No such option"),
        (["import"], 2, "Missing argument"),
        (["import", "none.toml"], 1, "none.toml does not exist; write one with `jumbo init`"),
        (["import", "study.toml", "runs/alpha.csv"], 2, "one study file, or tables"),
        (["import", "study.toml", "--objective", "loss"], 2, "[[history]]"),
        (["import", "none.csv"], 1, "none.csv does not exist"),
        (["import", "empty.toml"], 1, "names no old runs; add [[history]]"),
        (["import", "wrong.toml"], 1, "wrong.toml, history (files): runs/alpha.csv has no column 'value'"),
    ],
)
def test_mistakes_are_explained(folder: Path, arguments: list[str], code: int, expected: str) -> None:
    space = 'name = "s"\n[space]\nlr = { type = "float", low = 0.0, high = 1.0 }\n'
    (folder / "empty.toml").write_text(space)
    (folder / "wrong.toml").write_text(space + '[[history]]\nfiles = "runs/alpha.csv"\n')
    result = jumbo(*arguments)
    assert result.exit_code == code
    assert expected in said(result)
    assert not (folder / "study.toml").exists()


STUDY = """
name = "s"
[space]
rate = { type = "float", low = 1e-4, high = 0.1, log = true }
units = { type = "int", low = 16, high = 256 }
dropout = { type = "float", low = 0.0, high = 0.5 }

[[history]]
files = ["runs/alpha.csv", "runs/beta.csv"]
objective = "loss"
rename = { lr = "rate" }
fill = { dropout = 0.1 }
"""


def test_import_shows_what_is_read(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    result = jumbo("import", "study.toml")
    assert result.exit_code == 0
    used = (pl.read_csv("runs/alpha.csv")["lr"] >= 1e-4).sum()
    for text in (
        f"2 old tasks: {2 * used} rows used of 120 read",
        f"alpha: {60 - used} x rate is out of range, e.g. runs/alpha.csv row",
        "dropout: filled with 0.1, in runs/alpha.csv, runs/beta.csv",
        "ignored columns: run_id",
        "rate 0.0001 to 0.1 (log) lr",
        "units 16 to 256 (integer) units",
        "dropout 0.0 to 0.5 - (missing in 2 of 2 sources)",
        "alpha beta 1.00",
        "jumbo ask study.toml",
    ):
        assert text in said(result), text


def test_next_command_is_run_when_there_is_one(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY + '[objective]\ncommand = ["python", "train.py"]\n')
    assert "jumbo run study.toml" in jumbo("import", "study.toml").output


def test_import_of_tables_guesses_first(folder: Path) -> None:
    result = jumbo("import", "runs/*.csv")
    assert result.exit_code == 0
    for text in ("1e-05 to 0.1 (log)", "180 rows used of 180 read", "beta 1.00", "gamma -1.00 -1.00"):
        assert text in said(result)
    assert "jumbo init runs/*.csv" in said(result)
    assert list(folder.iterdir()) == [folder / "runs"], "nothing is written"


def test_import_of_tables_with_the_space_of_a_study(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    result = jumbo("import", "runs/gamma.csv", "--space-from", "study.toml")
    assert result.exit_code == 0
    assert "rate 0.0001 to 0.1 (log) lr" in said(result)
    assert "add these runs" in said(result)
    bare = STUDY.split("[[history]]")[0].replace("rate =", "lr =")
    (folder / "study.toml").write_text(bare)
    assert "dropout: filled with random values" in said(
        jumbo("import", "runs/gamma.csv", "--space-from", "study.toml", "--objective", "loss")
    )


def test_json(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)
    found: dict[str, Any] = json.loads(jumbo("import", "study.toml", "--json").stdout)
    used = int((pl.read_csv("runs/alpha.csv")["lr"] >= 1e-4).sum())
    assert found["rows"] == {"used": 2 * used, "read": 120, "learned_from": 2 * used}
    assert found["tasks"] == {name: {"used": used, "read": 60, "constant": False} for name in ("alpha", "beta")}
    assert found["renamed"] == {"lr": "rate"}
    assert [s["source"] for s in found["sources"]] == ["runs/alpha.csv", "runs/beta.csv"]
    assert found["sources"][0]["dropped"]["alpha"][0]["count"] == 60 - used
    assert found["correlations"]["tasks"] == ["alpha", "beta"]
    assert found["correlations"]["spearman"] == [[1.0, 1.0], [1.0, 1.0]]
    assert found["correlations"]["on_shared_configurations"] == [[True, True], [True, True]]


NAMES = st.text(min_size=1, max_size=8)
CHOICES = st.lists(NAMES | st.booleans() | st.integers(-9, 9), min_size=1, max_size=3, unique_by=lambda v: (type(v), v))
PARAMETERS = st.one_of(
    st.just(FloatDistribution(1e-5, 0.1, log=True)),
    st.just(IntDistribution(1, 9, step=2)),
    CHOICES.map(CategoricalDistribution),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, PARAMETERS, min_size=1, max_size=4), NAMES, NAMES, NAMES, NAMES)
def test_any_names_and_choices_survive(
    tmp_path: Path, parameters: dict[str, Any], file: str, objective: str, task: str, note: str
) -> None:
    space, first = Space(parameters), next(iter(parameters))
    columns = {"objective": objective, "direction": "maximize", "task": task, "rename": {note: first}}
    text = study_text("s", space, "maximize", [file, file], columns, {note: f"left out: {note}", first: note})
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    study = load(path)
    assert study.space == space
    assert study.old_runs == (OldRuns("files", (file, file), columns),)
