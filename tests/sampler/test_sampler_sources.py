"""What a user passes as source_studies=, and an objective that has other choices than the old studies."""

from __future__ import annotations

import logging
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import RandomSampler

from jumbo_bo import JumboSampler
from jumbo_bo.errors import UserError


def objective(trial: optuna.Trial, colours: tuple[str, ...] = ("red", "blue")) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    return (x - 0.3) ** 2 + (trial.suggest_categorical("colour", colours) == "red")


def old_study(storage: str | None = None, name: str = "old") -> optuna.Study:
    study = optuna.create_study(study_name=name, storage=storage, sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    return study


def sampler(source: Any, **options: Any) -> JumboSampler:
    return JumboSampler(source_studies=source, method="rgpe", seed=0, cache=None, **options)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What our logger says."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("optuna.jumbo_bo.sampler")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def test_a_study_a_list_or_nothing() -> None:
    study = old_study()
    for source in (study, [study], (study,), iter([study])):
        assert sampler(source).infer_relative_search_space(study, study.trials[0]).keys() == {"x", "colour"}
    assert sampler(None).infer_relative_search_space(optuna.create_study(), study.trials[0]) == {}


@pytest.mark.parametrize("listed", [False, True])
def test_a_name_or_an_address_is_answered_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    made = old_study("sqlite:///old.db", "last-week")
    optuna.copy_study(
        from_study_name="last-week",
        from_storage="sqlite:///old.db",
        to_storage="sqlite:///old.db",
        to_study_name="copy",
    )

    def answer(source: str) -> str:
        with pytest.raises(UserError) as caught:
            sampler([made, source] if listed else source)
        return str(caught.value)

    name = answer("last-week")
    assert "write source_studies=[optuna.load_study(study_name='last-week', storage=...)]" in name
    address = answer("sqlite:///old.db")
    code = address.partition("write source_studies=")[2]
    Path("as_written.py").write_text(f"import optuna\nfound = {code}\n")
    found = runpy.run_path("as_written.py")["found"]
    assert [study.study_name for study in found] == ["copy", "last-week"]
    assert "does not exist" in answer("sqlite:///none.db")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("source", [3, [3], ["x", 3][1:], [optuna.trial.create_trial(value=1.0)]])
def test_anything_else_is_no_study(source: Any) -> None:
    with pytest.raises(UserError, match="expected an optuna study or a list of them"):
        sampler(source)


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError) as caught:
        sampler("sqlite://me:secret@/nowhere/old.db")
    assert "secret" not in str(caught.value)


def test_a_new_choice_is_explained_and_does_not_stop_the_study(said: list[str]) -> None:
    more = ("red", "blue", "green")
    study = optuna.create_study(sampler=sampler(old_study()))
    study.optimize(lambda trial: objective(trial, more), n_trials=4)
    assert {trial.state.name for trial in study.trials} == {"COMPLETE"}
    assert {trial.params["colour"] for trial in study.trials} <= {"red", "blue"}
    for trial in study.trials:
        assert trial.params == trial.user_attrs["jumbo"]["params"], "the suggestion is what is tried"
    (message,) = said
    assert "'colour' is requested with the choices ('red', 'blue', 'green'), and the search space has" in message
    assert "'green' will not be suggested; pass search_space=" in message


def test_with_the_new_choice_in_the_space_nothing_is_said(said: list[str]) -> None:
    space = {"x": FloatDistribution(0.0, 1.0), "colour": CategoricalDistribution(["red", "blue", "green"])}
    study = optuna.create_study(sampler=sampler(old_study(), search_space=space))
    study.optimize(lambda trial: objective(trial, ("red", "blue", "green")), n_trials=3)
    assert said == []


def test_a_choice_that_is_gone(said: list[str]) -> None:
    study = optuna.create_study(sampler=sampler(old_study()))
    study.optimize(lambda trial: objective(trial, ("red", "grey")), n_trials=3)
    assert {trial.params["colour"] for trial in study.trials} <= {"red", "grey"}
    assert "'colour' is requested with the choices ('red', 'grey')" in said[0]


def test_other_choices_in_the_middle_of_a_study() -> None:
    study = optuna.create_study(sampler=sampler(old_study()))
    study.optimize(objective, n_trials=1)
    with pytest.raises(UserError, match=r"in trial 0 it had \('red', 'blue'\), which Optuna does not allow"):
        study.optimize(lambda trial: objective(trial, ("red", "blue", "green")), n_trials=1)
