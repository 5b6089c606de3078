"""`jumbo find`: what is found in a folder, what is said of it, and what becomes of the study file."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from found import STUDY, damage, objective, old_runs, runs, studies
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from widgets import jumbo

from jumbo_bo.cli import dialog
from jumbo_bo.study.find import heads, judge, look, places
from jumbo_bo.study.study_file import load

NEW = {
    ("files", "old/runs.csv"),
    ("files", "old/deep/trials.csv"),
    ("files", "old/deep/accuracy.parquet"),
    ("optuna", "monday"),
    ("optuna", "tuesday"),
    ("optuna", "friday"),
    ("ray", "old/ray/tuned"),
    ("wandb", "old/project/wandb"),
    ("wandb", "old/export.jsonl"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "old"
    old_runs(folder, np.random.default_rng(20220222))
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path) -> Path:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    shutil.copytree(made, tmp_path / "old")
    return tmp_path


def found(*arguments: str) -> dict[str, Any]:
    result = jumbo("find", "study.toml", *arguments, "--json")
    assert result.exit_code == 0, result.output
    made: dict[str, Any] = json.loads(result.stdout)
    return made


def names(said: dict[str, Any]) -> set[tuple[str, str]]:
    usable = [each for each in said["found"] if each["usable"]]
    return {(each["kind"], each["name"] if each["kind"] == "optuna" else each["where"]) for each in usable}


def whys(said: dict[str, Any]) -> dict[str, str]:
    return {each["where"]: each["why_not"] for each in said["found"] if not each["usable"]}


def prints(folder: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.*") if path.is_file()}


def test_every_kind_is_found_and_nothing_is_changed(folder: Path) -> None:
    before = prints(folder / "old")
    said = found("old")
    assert names(said) == NEW
    assert said["written"] == said["skipped"] == []
    assert prints(folder / "old") == before
    assert (folder / "study.toml").read_text() == STUDY
    each = {(e["kind"], e["name"]): e for e in said["found"]}
    table = each["files", "runs"]
    assert (table["rows"], table["used"], table["task"], table["tasks"]) == (40, 40, "dataset", ["a", "b"])
    assert (table["objective"], table["direction"], table["share"]) == ("loss", "minimize", 1.0)
    assert each["files", "accuracy"]["direction"] == "maximize"
    assert each["files", "trials"]["parameters"] == {"lr": "params_lr", "units": "params_units"}
    assert each["optuna", "monday"]["rows"] == 12
    assert (each["ray", "tuned"]["objective"], each["wandb", "project"]["objective"]) == ("loss", "loss")
    why = whys(said)
    assert "lr is" in why["old/deep/outside.jsonl"]
    assert why["old/people.csv"] == "none of the parameters; it has name, age"


def test_what_is_written_is_read_and_the_rest_of_the_file_stays(folder: Path) -> None:
    result = jumbo("find", "study.toml", "old", "--write")
    assert result.exit_code == 0, result.output
    assert "Added 7 entries to study.toml" in result.output
    text = (folder / "study.toml").read_text()
    assert text.startswith(STUDY)
    history = load("study.toml").history()
    assert history is not None
    assert {t.name for t in history.tasks} == {
        *("a", "b", "trials", "accuracy", "monday", "tuesday", "friday", "tuned", "project", "export")
    }
    again = jumbo("find", "study.toml", "old", "--write")
    assert "No old runs that fit were found" in again.output
    assert "it is in the study file already" in again.output
    assert (folder / "study.toml").read_text() == text
    assert jumbo("import", "study.toml").exit_code == 0


def test_from_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert jumbo("find", "../study.toml", "../old", "--write").exit_code == 0
    entries = tomllib.loads((folder / "study.toml").read_text())["history"]
    assert {"files": "old/runs.csv", "objective": "loss", "direction": "minimize", "task": "dataset"} in entries
    assert jumbo("find", "../study.toml", str(folder / "old"), "--write").output.count("already") == len(NEW)


def test_damaged_files_are_skipped_with_a_word(folder: Path) -> None:
    damage(folder / "old")
    said = found("old")
    assert {name for _, name in names(said)} >= {"monday", "tuesday", "friday", "old/ray/tuned"}
    skipped = {place["where"]: place["why"] for place in said["skipped"]}
    bad = ("bad.parquet", "empty.csv", "bad.db", "bad.journal", "bad.jsonl", "cut.json", "line.csv", "pipe.csv")
    assert {f"old/{name}" for name in bad} <= set(skipped) | set(whys(said))
    assert "a pipe or a device" in skipped["old/pipe.csv"]
    assert "old/deep/loop" not in json.dumps(said), "links to folders are not followed"
    tables = [each["where"] for each in said["found"] if each["name"] in ("runs", "again")]
    assert len(tables) == 1, "one file under two names"
    assert jumbo("find", "study.toml", "old", "--write").exit_code == 0
    load("study.toml").history()


def test_of_a_large_file_only_the_first_rows_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = runs(np.random.default_rng(1), 30_000)
    table.write_csv("old/large.csv")
    monkeypatch.setattr(judge, "READ_BYTES", 10_000)
    (each,) = (e for e in found("old/large.csv")["found"])
    assert (each["used"], each["exact"], each["tasks"]) == (None, False, [])
    assert abs(each["rows"] - 30_000) < 1_500
    assert f"about {each['rows']:,}" in jumbo("find", "study.toml", "old/large.csv").output


def test_large_folders_and_many_files_are_not_read_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "READ_IN_ALL", 0)
    assert {each["used"] for each in found("old")["found"] if each["kind"] == "files"} == {None}
    monkeypatch.setattr(places, "MOST_ENTRIES", 3)
    said = found("old")
    assert "more than 3 files" in said["skipped"][0]["why"]


def test_of_many_studies_the_newest_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "STUDIES", 1)
    each = {e["name"]: e for e in found("old/optuna.db")["found"]}
    assert each["tuesday"]["usable"]
    assert "not one of the newest 1 studies" in each["monday"]["why_not"]


def test_the_study_itself_is_no_old_run(folder: Path) -> None:
    studies(JournalStorage(JournalFileBackend("study.journal")), "widgets", "another")
    said = found("study.journal")
    assert names(said) == {("optuna", "another")}
    assert whys(said) == {"study.journal": "it is in the study file already"}


def test_likeness_to_the_trials_of_the_study(folder: Path, rng: np.random.Generator) -> None:
    study = optuna.create_study(
        study_name="widgets",
        storage=JournalStorage(JournalFileBackend("study.journal")),
        sampler=optuna.samplers.RandomSampler(seed=3),
    )
    study.optimize(objective, n_trials=40)
    (folder / "more").mkdir()
    runs(rng, 100).write_csv("more/same.csv")
    runs(rng, 100, -1.0).write_csv("more/opposite.csv")
    said = found("more")
    assert said["compared_with"] == "the finished trials of the study"
    alike = {each["name"]: each["likeness"][0] for each in said["found"]}
    assert alike["same"] > 0.5
    assert alike["opposite"] < -0.5
    assert [each["name"] for each in said["found"]] == ["same", "opposite"], "the most alike first"


def test_likeness_to_the_old_runs_that_are_known(folder: Path, rng: np.random.Generator) -> None:
    (folder / "study.toml").write_text(STUDY + '\n[[history]]\nfiles = "old/runs.csv"\nobjective = "loss"\n')
    runs(rng, 100).write_csv("same.csv")
    (each,) = (said := found("same.csv"))["found"]
    assert said["compared_with"] == "the old runs in the study file"
    assert each["likeness"][0] > 0.5


def test_copies_are_found_once(folder: Path) -> None:
    (folder / "old" / "copy.csv").write_bytes((folder / "old" / "runs.csv").read_bytes())
    said = found("old")
    assert whys(said)["old/runs.csv"] == "the same runs as copy in old/copy.csv"
    assert ("files", "old/copy.csv") in names(said)


def test_too_few_parameters_are_not_enough(folder: Path, rng: np.random.Generator) -> None:
    third = 'depth = { type = "int", low = 1, high = 9 }\nwidth = { type = "int", low = 1, high = 9 }\n'
    (folder / "study.toml").write_text(STUDY + third)
    runs(rng, 20).drop("units").write_csv("one.csv")
    assert whys(found("one.csv")) == {"one.csv": "only 1 of 4 parameters"}
    assert names(found("one.csv", "--share", "0.2")) == {("files", "one.csv")}
    (each,) = found("one.csv", "--share", "0.2")["found"]
    assert each["missing"] == ["units", "depth", "width"]


def test_without_a_result_the_numbers_are_named(folder: Path, rng: np.random.Generator) -> None:
    runs(rng, 20).rename({"loss": "q"}).write_csv("odd.csv")
    assert whys(found("odd.csv")) == {
        "odd.csv": "no column has a name like a result, such as loss; pass --objective one of its numbers: q"
    }
    assert names(found("odd.csv", "--objective", "q")) == {("files", "odd.csv")}
    (folder / "study.toml").write_text(STUDY + '\n[[history]]\nfiles = "old/runs.csv"\nobjective = "q"\n')
    assert names(found("odd.csv")) == {("files", "odd.csv")}, "the study file knows the name"


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ('[history]\nfiles = "old/runs.csv"\nobjective = "loss"\n', "write [[history]], with two brackets"),
        ('history = [{ files = "old/runs.csv", objective = "loss" }]\n', "all history on one line"),
    ],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_is(folder: Path, history: str, said: str) -> None:
    text = history + STUDY if history.startswith("history") else STUDY + history
    (folder / "study.toml").write_text(text)
    result = jumbo("find", "study.toml", "old/ray", "--write")
    assert result.exit_code == 1
    assert said in result.stderr
    assert (folder / "study.toml").read_text() == text
    assert not list(folder.glob("*.part"))


def test_line_ends_and_links_are_kept(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "study.toml").write_bytes(STUDY.replace("\n", "\r\n").rstrip().encode())
    (folder / "study.toml").unlink()
    (folder / "study.toml").symlink_to("real/study.toml")
    assert jumbo("find", "study.toml", "old/ray", "--write").exit_code == 0
    assert (folder / "study.toml").is_symlink()
    text = (folder / "real" / "study.toml").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    assert text.endswith(b'[[history]]\r\nray = "old/ray/tuned"\r\nobjective = "loss"\r\ndirection = "minimize"\r\n')


@pytest.mark.parametrize(
    ("answers", "added"), [("2\n", 1), ("9 x\n1, 2\n", 2), ("all\n", 9), ("\n", 0), ("n\n", 0), ("", 0)]
)
def test_the_question(folder: Path, monkeypatch: pytest.MonkeyPatch, answers: str, added: int) -> None:
    monkeypatch.setattr(dialog, "possible", lambda screen: True)
    result = jumbo("find", "study.toml", "old", given=answers)
    assert result.exit_code == 0, result.output
    sources = tomllib.loads((folder / "study.toml").read_text()).get("history", [])
    n = sum(len(e["studies"]) if isinstance(e.get("studies"), list) else 1 for e in sources)
    n += sum(len(e["wandb"]) - 1 for e in sources if isinstance(e.get("wandb"), list))
    assert n == added


def test_wrong_places(folder: Path) -> None:
    for place, said in {
        "missing": "missing does not exist; looked from",
        "sqlite:///missing.db": "missing.db does not exist",
    }.items():
        result = jumbo("find", "study.toml", place)
        assert (result.exit_code, result.stdout) == (1, "")
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
    assert "Skipped nonsense://x: cannot use the storage" in jumbo("find", "study.toml", "nonsense://x", "old").output


def test_passwords_are_not_shown(folder: Path) -> None:
    result = jumbo("find", "study.toml", "http://me:secret@127.0.0.1:9/", "--json")
    assert "secret" not in result.output
