"""Runs as the tests of trackers write and compare them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.history import History
from jumbo_bo.space.space import Space

SPACE = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "opt/name": CategoricalDistribution(["adam", "sgd"])})
DOTTED = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "opt.name": CategoricalDistribution(["adam", "sgd"])})


def values(history: History) -> dict[str, list[float]]:
    """What the user's runs returned, by task."""
    tasks = (*history.tasks, *([history.target] if history.target else []))
    return {t.name: (history.sign(t.name) * t.y).tolist() for t in tasks}


def reasons(history: History) -> dict[str, dict[str, int]]:
    dropped = [(task, d) for r in history.reports for task, drops in r.dropped.items() for d in drops]
    out: dict[str, dict[str, int]] = {}
    for task, d in dropped:
        out.setdefault(task, {})[d.reason] = d.count
    return out


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    as_lines = file.suffix != ".json"
    file.write_text("".join(f"{json.dumps(r)}\n\n" for r in rows) if as_lines else json.dumps(rows))
    return file
