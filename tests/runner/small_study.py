"""An objective that says when it was started, and a study of it as a run leaves it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.storage import opened
from jumbo_bo.runner.book import RUNNER, opened_book
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.runner.engines import Local
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import StudyFile
from waiting import wait_for

SPACE = Space({"x": FloatDistribution(0.0, 1.0), "kind": CategoricalDistribution(("a", "b"))})
PYTHON = (sys.executable, "-I", "-S")

# Prints a value that a test can recompute, and leaves a line in `log` at its start.
OBJECTIVE = """
import json, os, sys, time
params = json.load(sys.stdin)
with open("log", "a") as log:
    log.write(json.dumps(params) + "\\n")
{body}
print(json.dumps({{"value": params.get("x", 0.0)}}))
"""


class Log:
    """A watcher that remembers, and can do something at every tick."""

    def __init__(self, at_tick: Callable[[Sequence[Running]], None] | None = None) -> None:
        self.notes: list[str] = []
        self.done: list[FrozenTrial] = []
        self.at_tick = at_tick

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        self.done.append(trial)

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        if self.at_tick is not None:
            self.at_tick(running)


def write_objective(folder: Path, body: str = "") -> None:
    (folder / "objective.py").write_text(OBJECTIVE.format(body=body))


def until(name: str) -> str:
    """A body that ends when there is a file of this name, or after five minutes."""
    waits = f"not os.path.exists({name!r}) and time.monotonic() < end"
    return f"end = time.monotonic() + 300\nwhile {waits}: time.sleep(0.01)"


def evaluated(study: StudyFile) -> list[dict[str, Any]]:
    """The parameters of every start of the command."""
    log = study.folder / "log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def stored(study: StudyFile) -> list[FrozenTrial]:
    with opened(study.address) as storage:
        return optuna.load_study(study_name=study.name, storage=storage).get_trials()


def new_study(study: StudyFile, directions: Sequence[str] = ("minimize",)) -> optuna.Study:
    """Made with plain Optuna."""
    with opened(study.address) as storage:
        return optuna.create_study(study_name=study.name, storage=storage, directions=directions)


def start_trial(study: StudyFile, x: float = 0.25) -> FrozenTrial:
    """A running trial, as a killed `jumbo run` leaves it. The runs folder gets its id here."""
    study.runs.mkdir(exist_ok=True)
    (study.runs / "id").write_text('"mine"')
    with opened_book(study) as book:
        return book.add(TrialState.RUNNING, {"x": x, "kind": "a"}, {RUNNER: {"folder": "mine", "run": "first"}})


def evaluate(folder: Path, wait: bool = True) -> None:
    """What a `jumbo run` that was killed then has started."""
    engine = Local()
    engine.start(folder)
    if wait:
        wait_for((folder / "result.json").exists)
    engine.close()
