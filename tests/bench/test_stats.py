from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jumbo_bo.bench import stats
from jumbo_bo.bench.run import Run, run_suite, write

HEAD = {"commit": "a" * 40, "dirty": False, "versions": {"numpy": "2"}, "command": "c", "date": "2026-01-01"}


def test_mean_and_standard_error() -> None:
    assert stats.mean_error(np.array([1.0, 2.0, 3.0, 6.0])) == pytest.approx((3.0, np.sqrt(14 / 3) / 2))
    assert np.isnan(stats.mean_error(np.array([1.0]))[1])


def test_log_area_counts_the_optimum_as_the_floor() -> None:
    regret = np.array([[1.0, 0.1, 0.0], [0.01, 0.01, 0.01]])
    assert stats.log_area(regret, 0.01) == pytest.approx([(2 + 1 + 0) / 3, 0.0])


def test_average_rank_shares_ties_and_uses_common_seeds_only() -> None:
    def flat(x: float) -> np.ndarray:
        return np.full(10, x)

    curves = {
        ("p", "a"): {0: flat(1.0), 1: flat(0.0), 7: flat(9.0)},
        ("p", "b"): {0: flat(2.0), 1: flat(0.0)},
    }
    assert stats.average_rank(curves, ["a", "b"]) == ({"a": 1.25, "b": 1.75}, 2)


def test_report_from_files(tmp_path: Path) -> None:
    for method, scale in (("good", 1.0), ("bad", 10.0)):
        for seed in (0, 1):
            run = Run("demo", "p", method, seed, 10)
            label = {"suite": "demo", "problem": "p", "method": method, "seed": seed}
            rows = [
                {**label, "trial": t, "regret": scale * (1 + seed) * 1e-3, "cpu_ask": 0.2 * t * scale}
                for t in range(1, 11)
            ]
            head = {
                **label,
                "trials": 10,
                "unit": 1e-3,
                "floor": 1e-4,
                "cpu_pretraining": 3.0 + seed,
                **HEAD,
                "commit": method * 10,
            }
            write(run.path(tmp_path), [head, *rows])
    half = Run("demo", "p", "good", 2, 10).path(tmp_path)
    half.write_text(json.dumps({**HEAD, "trials": 10}) + "\n")  # no trials in it: not a finished run
    text = stats.report(tmp_path, "demo", None, [], ["p"])
    assert "| good | 1.50 ± 0.50 (2) |" in text
    assert "| bad | 15.00 ± 5.00 (2) |" in text
    assert text.index("| good") < text.index("| bad")
    assert "| good | 1.15 ± 0.15 | 1.15 | 1.00 |" in text
    assert "| good | 3.5 | 1.100 |" in text
    assert "different versions of the source" in text
    assert (tmp_path / "demo" / "report.md").read_text() == text
    assert (tmp_path / "demo" / "regret.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="no finished runs of"):
        stats.report(tmp_path, "demo", None, ["other"], ["p"])


def test_published_runs_need_no_single_files_and_give_way_to_new_ones(tmp_path: Path) -> None:
    def put(method: str, seed: int, regret: float) -> Path:
        label = {"suite": "demo", "problem": "p", "method": method, "seed": seed}
        rows = [{**label, "trial": t, "regret": regret, "cpu_ask": 0.1} for t in range(1, 11)]
        path = Run("demo", "p", method, seed, 10).path(tmp_path)
        write(path, [{**label, "trials": 10, "unit": 1.0, "floor": 1e-4, **HEAD}, *rows])
        return path

    single = [put("a", 0, 1.0), put("a", 1, 3.0)]
    first = stats.report(tmp_path, "demo", None, [], ["p"])
    for path in single:
        path.unlink()
    assert stats.report(tmp_path, "demo", None, [], ["p"]) == first
    started: list[Run] = []
    runs = [Run("demo", "p", "a", seed, 10) for seed in (0, 1, 2)]
    run_suite(runs, tmp_path, start=lambda run, *_: started.append(run))
    assert [run.seed for run in started] == [2]  # the others are published
    put("a", 1, 5.0)
    put("b", 0, 2.0)
    again = stats.report(tmp_path, "demo", None, [], ["p"])
    assert "| a | 3.00 ± 2.00 (2) |" in again
    assert "| b | 2.00 ± nan (1) |" in again
