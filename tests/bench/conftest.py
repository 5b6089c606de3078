from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jumbo_bo.bench import interactive
from jumbo_bo.bench.run import Run, write

HEAD = {"commit": "a" * 40, "dirty": False, "versions": {"numpy": "2"}, "command": "c", "date": "2026-01-01"}


@pytest.fixture
def small_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real script takes 5 MB and is tested with the figures."""

    def put(folder: Path) -> None:
        (folder / "plotly.min.js").touch()

    monkeypatch.setattr(interactive, "share_plotly", put)


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Writes one finished run; `regret` is that of every trial or one per trial."""

    def write_run(
        method: str, seed: int, regret: float | Sequence[float], problem: str = "p", suite: str = "demo", **more: object
    ) -> Path:
        regrets = regret if isinstance(regret, Sequence) else [regret] * 10
        label = {"suite": suite, "problem": problem, "method": method, "seed": seed}
        times = {"cpu_ask": 0.2, "cpu_tell": 0.1}
        rows = [{**label, "trial": t, "regret": value, **times} for t, value in enumerate(regrets, 1)]
        path = Run(suite, problem, method, seed, len(rows)).path(tmp_path)
        write(path, [{**label, "trials": len(rows), "unit": 1.0, "floor": 1e-4, **HEAD, **more}, *rows])
        return path

    return write_run
