"""Several goals in a study file: checked, printed by the command, told by a person, kept for Optuna, shown."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest

from jumbo_bo.data.goals import Goal
from jumbo_bo.errors import UserError
from jumbo_bo.fronts import front, volumes
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.runner import people, supervise
from jumbo_bo.runner.attempt import outcome
from jumbo_bo.runner.book import best, opened_book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.state import status
from jumbo_bo.studies import follow
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile, load

STUDY = """
name = "two"
trials = 6
[space]
x = { type = "float", low = 0, high = 1 }
[goals]
loss = "minimize"
speed = { direction = "maximize", reference = 1.0 }
"""
GOALS = (Goal("loss"), Goal("speed", "maximize"))
JOB = Job(("train",), value="loss", limited=("speed", "purity"), goals=("speed",))


@pytest.fixture
def study(tmp_path: Path) -> StudyFile:
    (tmp_path / "study.toml").write_text(STUDY)
    return load(tmp_path / "study.toml")


def test_goals_are_read(study: StudyFile) -> None:
    assert study.goals == GOALS
    assert study.reference == {"speed": 1.0}
    assert study.direction == "minimize"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('loss = "minimize"\n', "", "fewer than two"),
        ('loss = "minimize"', 'loss = "smaller"', "goals.loss is 'smaller', expected"),
        ('loss = "minimize"', "loss = 3", "goals.loss is 3, expected"),
        ('loss = "minimize"', "loss = { reference = 2 }", "goals.loss.direction is missing"),
        ('loss = "minimize"', 'x = "minimize"', "'x' is a parameter"),
        ("reference = 1.0", "worst = 1.0", "unknown key 'worst'"),
        ("reference = 1.0", 'reference = "a"', "reference is 'a', expected a number"),
        ("trials = 6", 'direction = "minimize"', "direction: there are several goals"),
        ("trials = 6", "bounds = [0, 1]", "bounds: there are several goals"),
        ("[goals]", "[stop]\ngain = 1\n[goals]", "stop: there are several goals"),
        ("[goals]", "[limits]\nspeed = { min = 2 }\n[goals]", "goals.speed has a limit as well"),
        ("[goals]", '[objective]\ncommand = ["a"]\nvalue = "loss"\n[goals]', "prints the goals by their names"),
    ],
)
def test_wrong_goals(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in STUDY
    (tmp_path / "study.toml").write_text(STUDY.replace(old, new))
    with pytest.raises(UserError, match=problem):
        load(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"loss": 1, "speed": 3, "purity": null}', {"speed": 3.0}),
        ('{"loss": 1, "speed": 3, "purity": 0.5}', {"speed": 3.0, "purity": 0.5}),
        ('{"loss": 1, "speed": null, "purity": 0.5}', '"speed" has no value, and it is a goal'),
        ('{"loss": 1, "speed": NaN, "purity": 0.5}', '"speed" has no value, and it is a goal'),
        ('{"loss": 1, "purity": 0.5}', 'no "speed", which is a goal'),
        ('{"loss": null, "speed": 3, "purity": 0.5}', "not a finite number"),
        ("0.5", "no JSON line like"),
    ],
)
def test_the_command_prints_every_goal(tmp_path: Path, printed: str, expected: dict[str, float] | str) -> None:
    (tmp_path / "stdout").write_text(printed + "\n")
    ended = {"exit": 0, "error": None, "seconds": 1.0, "timed_out": False, "stopped": False}
    supervise.write(tmp_path / "result.json", ended)
    end = outcome(tmp_path, JOB)
    assert end is not None
    if isinstance(expected, str):
        assert expected in (end.error or "")
    else:
        assert (end.value, end.measured) == (1.0, expected)


def told(file: StudyFile, rows: list[tuple[float, float, float]]) -> None:
    lines = [json.dumps({"params": {"x": x}, "value": {"loss": a, "speed": b}}) for x, a, b in rows]
    with opened_book(file) as book:
        people.tell(book, people.parse(lines, file.goals))


def test_results_are_kept_as_optuna_keeps_them(study: StudyFile) -> None:
    told(study, [(0.1, 1.0, 5.0), (0.2, 2.0, 4.0), (0.3, 0.5, 3.0)])
    kept = optuna.load_study(study_name="two", storage=study.address)
    assert [t.values for t in kept.trials] == [[1.0, 5.0], [2.0, 4.0], [0.5, 3.0]]
    assert kept.metric_names == ["loss", "speed"]
    assert {t.number for t in kept.best_trials} == {0, 2}
    with opened_book(study, create=False) as book:
        trials = book.trials()
        found = status(study, book.kept(), book.corrections())
    assert [t.number for t in front(trials, study.goals, study.space)] == [2, 0]
    assert best(trials, study) is None
    assert [t["value"] for t in found.to_json()["front"]] == [{"loss": 0.5, "speed": 3.0}, {"loss": 1.0, "speed": 5.0}]


def test_an_open_trial_is_told_in_every_way(study: StudyFile) -> None:
    with opened_book(study) as book:
        asked = list(people.ask(book, 3, lambda text: None))
        by_name = people.results_of(["speed=4", "loss=0.5"], study.goals)
        in_order = people.results_of(["0.5", "4"], study.goals)
        assert by_name == in_order == (0.5, {"speed": 4.0})
        entries = [people.Entry("", asked[0].number, None, *in_order[:1], {}, in_order[1])]
        entries += people.parse(['{"trial": 1, "value": [0.25, 2]}', '{"trial": 2, "failed": true}'], study.goals)
        people.tell(book, entries)
        values = [t.values for t in book.storage.get_all_trials(book.study_id)]
    assert values == [[0.5, 4.0], [0.25, 2.0], None]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["0.5"], "1 value, expected 2: loss, speed"),
        (["0.5", "1", "2"], "3 values, expected 2"),
        (["loss=1", "sped=2"], "did you mean 'speed'"),
        (["loss=1"], "value has no 'speed'"),
        (["loss=1", "loss=2"], "named twice"),
        (["loss=1", "3"], "expected a number"),
        (["1", "nan"], "use --failed"),
    ],
)
def test_wrong_results(study: StudyFile, texts: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        people.results_of(texts, study.goals)


def test_all_lines_are_checked_before_the_first_is_stored(study: StudyFile) -> None:
    good, bad = ({"params": {"x": 0.1}, "value": v} for v in ({"loss": 1, "speed": 2}, {"loss": 1}))
    with opened_book(study) as book, pytest.raises(UserError, match=r"line 2: value has no 'speed'"):
        people.tell(book, people.parse(map(json.dumps, (good, bad)), study.goals))
    with opened_book(study) as book:
        assert book.trials() == []


def test_a_study_keeps_its_goals(study: StudyFile) -> None:
    told(study, [(0.1, 1.0, 5.0)])
    for old, new in (("speed =", "pace ="), ('"maximize"', '"minimize"')):
        study.path.write_text(STUDY.replace(old, new))
        with pytest.raises(UserError, match=r"but .* says minimize loss and"), opened_book(load(study.path)):
            pass
    study.path.write_text(STUDY.partition("[goals]")[0])
    with pytest.raises(UserError, match="has direction minimize and maximize, but"), opened_book(load(study.path)):
        pass


def test_the_optimizer_follows_the_study(study: StudyFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    told(study, [(0.1, 1.0, 5.0), (0.2, 2.0, 4.0)])
    with opened_book(study) as book:
        optimizer = follow(build_optimizer(study, 6, lambda text: None), book.trials())
        assert isinstance(optimizer, ParetoOptimizer)
        assert optimizer.reference == {"speed": 1.0}
        assert optimizer.told == [({"x": 0.1}, {"loss": 1.0, "speed": 5.0}), ({"x": 0.2}, {"loss": 2.0, "speed": 4.0})]
        told(study, [(0.3, 0.5, 3.0)])
        assert follow(optimizer, book.trials()) is optimizer
        book.forget([0], "wrong")
        again = follow(optimizer, book.trials())
        assert [values["loss"] for _, values in again.told] == [2.0, 0.5]


def test_old_runs_in_files_know_every_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "old.csv").write_text("x,loss,speed\n" + "\n".join(f"{i / 9},{i},{9 - i}" for i in range(10)))
    (tmp_path / "study.toml").write_text(STUDY + '[[history]]\nfiles = "old.csv"\n')
    history = load(tmp_path / "study.toml").history()
    assert history is not None
    assert history.tasks[0].y.tolist() == [-i for i in range(10)]
    assert list(history.limits) == ["speed"]
    (tmp_path / "old.csv").write_text("x,loss\n" + "\n".join(f"{i / 9},{i}" for i in range(10)))
    notes: list[str] = []
    build_optimizer(load(tmp_path / "study.toml"), 6, notes.append)
    assert "The old runs do not have 'speed': it is learned from the new trials alone" in notes


def test_progress_is_the_share_of_the_last_volume() -> None:
    rows = [{"loss": 2.0, "speed": 2.0}, {"loss": 1.0, "speed": 2.0}, {"loss": 5.0, "speed": 1.5}]
    found = volumes(rows, GOALS, {"loss": 3.0, "speed": 1.0})
    assert found == pytest.approx([0.5, 1.0, 1.0])
    assert volumes([], GOALS, {}) == []
