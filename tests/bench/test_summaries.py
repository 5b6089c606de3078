from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from jumbo_bo.bench import __main__ as command
from jumbo_bo.bench import figures, overview, ranking, summaries
from jumbo_bo.bench.stats import Curves

pytestmark = pytest.mark.usefixtures("small_script")
Put = Callable[..., Path]


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


@pytest.fixture
def two_suites(put: Put) -> None:
    """On the one problem of 'demo' a is better than b, on the two of 'more' b is."""
    for problem, suite, a, b in (("p", "demo", 0.1, 2.0), ("p", "more", 2.0, 1.0), ("q", "more", 2.0, 1.0)):
        for seed in range(2 if suite == "demo" else 3):
            for method, regret in (("a", a), ("b", b), ("optuna-gp", 3.0), ("random", 10.0)):
                put(method, seed, regret, problem, suite)


@pytest.mark.usefixtures("two_suites")
def test_every_suite_has_the_same_weight(tmp_path: Path) -> None:
    text = summaries.summary(tmp_path, ["demo", "more"], None, [], "a")
    assert "3 problems in 2 suites" in text
    ranks = section(text, "Average rank")
    for method, rank in (("a", "1.50"), ("b", "1.50"), ("optuna-gp", "3.00")):
        assert f"| {method} |" + f" {rank} [{rank}, {rank}] |" * 4 in ranks
    assert "| method | demo | more |" in ranks
    assert "| a | 1.00 [1.00, 1.00] | 2.00 [2.00, 2.00] |" in ranks
    # log10(20) in the one suite, log10(1 / 2) in the other: (1.301 - 0.301) / 2
    assert "| b | 3 | 8 |" + " **+0.50** [+0.50, +0.50] |" * 4 in section(text, "Paired differences to a")
    assert "| b |" + " 2 / 0 / 1 |" * 4 in section(text, "Paired differences to a")
    worse = section(text, "Never worse than without old runs")
    assert "| a | 3 | 0 | 0 | 0.67 | 0.67 (more p) |" in worse
    assert "| random | 3 | 3 | 3 | 3.33 | 3.33 (demo p) |" in worse
    assert "| more p | 0.67 [0.67, 0.67] | optuna-gp | 3 |" in worse
    assert "| a | 1.0 | 1.0 | 1.0 |" in section(text, "Trials to reach optuna-gp")
    assert "| random | ≥ 11.0 | ≥ 11.0 | ≥ 11.0 |" in section(text, "Trials to reach optuna-gp")
    assert "Nothing: every method" in section(text, "What is missing")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "summary.png").read_bytes().startswith(b"\x89PNG")
    assert 'src="plotly.min.js"' in (tmp_path / "summary.html").read_text()


@pytest.mark.usefixtures("two_suites")
def test_methods_that_lack_something_are_shown_with_what_they_have(tmp_path: Path, put: Put) -> None:
    put("part", 0, 1.0, "q", "more")
    put("alone", 7, 1.0, "p", "demo")
    text = summaries.summary(tmp_path, ["demo", "more"], None, [], "a")
    ranks = section(text, "Average rank")
    assert "alone (on 1 of 3 problems)" in ranks
    assert "| part |" not in ranks
    differences = section(text, "Paired differences to a")
    assert "| part | 1 | 1 |" + " -0.30 |" * 4 in differences  # one pair: no interval
    assert "Without a problem and seed in common with a: alone." in differences
    assert "| part | 1 | 0 | 0 | 0.33 | 0.33 (more q) |" in section(text, "Never worse than without old runs")
    assert "| part | n/a | n/a | n/a |" in section(text, "Trials to reach optuna-gp")
    missing = section(text, "What is missing")
    assert "- part: no runs in demo; in more 1 of 2 problems and 1 of 6 pairs\n" in missing
    assert "- a: in demo 2 of 3 pairs\n" in missing  # of the seed that only another has
    some = summaries.summary(tmp_path, ["demo", "more"], None, ["part", "a"], "a")
    assert "| b |" not in some
    assert "None of the cold methods" in some
    assert "optuna-gp is not among these methods." in some


@pytest.mark.usefixtures("two_suites")
def test_ranks_are_on_the_problems_of_the_reference(tmp_path: Path, put: Put) -> None:
    put("b", 0, 1.0, "only-b", "more")
    text = summaries.summary(tmp_path, ["demo", "more"], None, [], "a")
    assert "among 4 methods on the 8 pairs" in section(text, "Average rank")
    assert "- a: in more 2 of 3 problems and 6 of 7 pairs" in section(text, "What is missing")
    with pytest.raises(ValueError, match="no finished runs of nobody in demo, more; choose --reference from"):
        summaries.summary(tmp_path, ["demo", "more"], None, [], "nobody")
    with pytest.raises(ValueError, match="no finished runs of"):
        summaries.summary(tmp_path, ["demo", "more"], None, ["nobody"], "nobody")


def test_hours_add_up_over_methods_and_suites(tmp_path: Path, put: Put) -> None:
    for suite in ("demo", "more"):
        put("a", 0, 1.0, suite=suite, cpu_pretraining=3600.0)
        put("random", 0, 1.0, suite=suite)
    hours = section(summaries.summary(tmp_path, ["demo", "more"], None, [], "a"), "CPU hours")
    assert "(without that of 2 runs that did not record it)" in hours
    assert "| a | 2.00 | 1.00 | 1.00 |" in hours
    assert "| all | 2.00 | 1.00 | 1.00 |" in hours  # 3 seconds for random are 0.00 hours


def test_suites_of_other_lengths_failed_trials_and_a_single_seed(tmp_path: Path, put: Put) -> None:
    for method, scale in (("jumbo-mixture", 1.0), ("gp-ucb", 2.0)):
        put(method, 0, [float("inf")] * 3 + [scale] * 9, suite="long")
        put(method, 0, [float("inf")] * 5 + [scale] * 5, "failing", "demo")
        put(method, 0, [float("inf")] * 10, "never", "demo")
        put(method, 0, scale, "q", "demo")
    text = summaries.summary(tmp_path, ["demo", "long"], None, [])
    assert "| gp-ucb | 3 | 3 |" in section(text, "Paired differences to jumbo-mixture")  # not 'never'
    assert "nan" not in text
    assert "inf" not in text
    assert (tmp_path / "summary.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("two_suites")
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_check_suite", lambda *_: None)  # made-up suites
    words = ["summary", "demo", "more", "--out", str(tmp_path)]
    done = CliRunner().invoke(command.app, [*words, "--reference", "b"])
    assert done.exit_code == 0, done.output
    assert "## Paired differences to b" in done.output
    assert CliRunner().invoke(command.app, words).exit_code == 2  # jumbo-joint has no runs there


def test_who_is_drawn() -> None:
    order = ["w1", "jumbo-joint", "tpe", "w2", "w3", "gp-ucb"]
    assert overview.chosen(order, "jumbo-joint") == ["jumbo-joint", "w1", "w2", "tpe"]
    assert overview.chosen(["tpe", "random"], "tpe") == ["tpe", "random"]


def test_relatives_are_drawn_in_colours_of_their_own() -> None:
    look = overview.colours(["jumbo-mixture", "box-gp-ucb", "gp-ucb", "jumbo:warm=g"])
    assert len({colour for colour, _ in look.values()}) == 4
    assert list(look)[:2] == ["jumbo-mixture", "box-gp-ucb"]
    assert look["jumbo-mixture"] == figures.STYLES["jumbo-mixture"]
    assert look["gp-ucb"] == figures.STYLES["gp-ucb"]
    assert len(overview.colours([str(i) for i in range(20)])) == 20  # more than there are: some share


def test_lines_of_the_picture_are_the_numbers_of_the_tables() -> None:
    rng = np.random.default_rng(2)
    suites = {"p": "x", "q": "y"}
    curves: Curves = {
        (p, m): {s: np.minimum.accumulate(rng.uniform(size=10)) for s in range(3)} for p in suites for m in "ab"
    }
    lines, table = overview.rank_lines(curves, ["a", "b"], suites), ranking.ranks(curves, ["a", "b"], (5,), suites)
    np.testing.assert_allclose(lines["a"][4], table.table["a"][0])
    logs = {("p", "a"): {0: np.array([0.0, -1.0]), 1: np.array([0.0, -3.0])}, ("q", "b"): {0: np.zeros(2)}}
    logs |= {("p", "b"): {0: np.array([0.0, 0.0])}, ("r", "b"): {0: np.array([-2.0, -2.0])}}
    found = overview.regret_lines(logs, "x", {"p": "x", "q": "y", "r": "x"}, ["a", "b"])
    assert list(found) == ["b"]  # a lacks r
    np.testing.assert_allclose(found["b"][:, 0], [0.1, 0.1])
    alone = overview.regret_lines(logs, "x", {"p": "x", "q": "y", "r": "z"}, ["a"])
    np.testing.assert_allclose(alone["a"][:, 0], [1.0, 0.01])


def test_names_move_apart_and_no_further_than_they_must() -> None:
    assert overview.spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert overview.spread([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.45, 0.55, 0.9])
    moved = overview.spread([0.2, 0.21, 0.19, 0.22], 0.05)
    assert np.argsort(moved).tolist() == [2, 0, 1, 3]
    assert np.diff(np.sort(moved)) == pytest.approx([0.05] * 3)
    assert np.mean(moved) == pytest.approx(0.205)


@pytest.mark.usefixtures("two_suites")
def test_the_page_lists_every_method_once(tmp_path: Path) -> None:
    summaries.summary(tmp_path, ["demo", "more"], None, [], "a")
    found = re.search(r"Plotly\.newPlot\(\s*\"figure\",\s*(\[.*?\]),\s*\{\"", (tmp_path / "summary.html").read_text())
    assert found
    lines = [trace for trace in json.loads(found[1]) if trace.get("fill") is None]
    assert sorted(t["name"] for t in lines if t["showlegend"]) == ["a", "b", "optuna-gp", "random"]
    assert len(lines) == 3 * 4  # ranks and two suites
