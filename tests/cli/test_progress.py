"""What `jumbo run` shows while it is at work, for people and for programs."""

from __future__ import annotations

import io
import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState
from rich.console import Console
from widgets import jumbo, started, stored

from jumbo_bo.cli.progress import Pace, Progress
from jumbo_bo.runner.coordinator import Running
from waiting import wait_for


def test_live_line_fits_the_terminal() -> None:
    file = io.StringIO()
    screen = Console(file=file, force_terminal=True, width=60, height=10, color_system=None)
    params: dict[str, Any] = {"net.lr": 0.5, "net.units": 16}
    trial = optuna.trial.create_trial(
        value=0.5,
        params=params,
        distributions={"net.lr": FloatDistribution(0, 1), "net.units": IntDistribution(1, 99)},
        user_attrs={"why": "because " * 20, "seconds": 2.0},
    )
    trial.number = 7
    with Progress(screen, workers=9) as progress:
        progress.tick([Running(trial, Path(), time.time() - 200)] * 9, 3, 50)
        progress.finished(trial, trial)
        progress.tick([], 4, 50)
    text = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", file.getvalue())
    shown = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert max(map(len, shown)) <= 60
    for line in (
        "3 of 50 trials done",
        "  trial 7, running for 3 min: lr=0.5, units=16",
        "  and 1 more",
        "trial 7: 0.5000, the best so far, 2.0 s: lr=0.5, units=16",
        "4 of 50 trials done, best 0.5000 in trial 7",
        "  choosing the next trial ...",
    ):
        assert line in [s.rstrip() for s in shown], line
    assert text.count("because") == 20, "nothing of the reason is cut"


def test_time_left() -> None:
    pace = Pace()
    assert pace.left(10, now=100.0) is None
    pace.finished(110.0)
    assert pace.left(9, now=111.0) is None, "one trial tells little"
    pace.finished(120.0)
    assert pace.left(8, now=124.0) == pytest.approx(8 * 10 - 4)
    assert pace.left(1, now=200.0) == 0.0


def test_events_as_json(folder: Path) -> None:
    result = jumbo("run", "study.toml", "--json", "--workers", "2")
    assert result.exit_code == 0
    events = [json.loads(line) for line in result.stdout.splitlines()]
    trials = stored()
    for kind in ("started", "finished"):
        assert sorted(e["trial"] for e in events if e["event"] == kind) == [0, 1, 2, 3]
    for trial in trials:
        (done,) = [e for e in events if e["event"] == "finished" and e["trial"] == trial.number]
        assert (done["value"], done["params"]) == (trial.value, trial.params)
        assert done["why"]
        assert done["seconds"] > 0
    best = min(trials, key=lambda t: t.value or 0.0)
    shown = {"trial": best.number, "value": best.value, "params": best.params}
    assert events[-1] == {"event": "ended", "reason": "budget", "finished": 4, "best": shown}


def test_events_of_failed_trials(folder: Path) -> None:
    (folder / "train.py").write_text("raise SystemExit('no data')")
    result = jumbo("run", "study.toml", "--json", "--trials", "3")
    assert result.exit_code == 1
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [e["event"] for e in events] == ["started", "failed"] * 3
    assert all("no data" in e["error"] for e in events if e["event"] == "failed")
    assert "3 trials in a row have failed" in " ".join(result.stderr.split())


def test_as_many_workers_as_asked_for(folder: Path) -> None:
    (folder / "slow").touch()
    process = started(folder, "run", "study.toml", "--workers", "3")
    wait_for((folder / "widgets.runs" / "trial-0002" / "attempt-1" / "stdout").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert sum(t.state == TrialState.RUNNING for t in stored()) == 3
