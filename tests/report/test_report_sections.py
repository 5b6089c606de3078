"""The sections of the report: what each says about a study, and what is drawn."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from optuna.trial import TrialState
from report_pages import IDS, SPACE, Reader, explanation, full_page, marks, plots, sections, study, trial

from jumbo_bo.report import page


def test_all_sections_in_order_with_one_heading_each() -> None:
    html = full_page()
    assert list(sections(html)) == IDS
    assert set(plots(html)) == {f"plot-{name}" for name in IDS if name not in ("summary", "trials")}
    headings = [tag for tag, _ in Reader(html).tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1", "h2", "h3", *["h2"] * 8]


def test_summary() -> None:
    words = Reader(sections(full_page())["summary"]).words
    best_value = "trial 4; looking for the lowest"
    for expected in ("0.3", best_value, "1 failed", "1 running", "75%", "The old runs help a lot."):
        assert expected in words
    best = trial(4).params
    assert all(f"{name} {value}" in words for name, value in best.items())


def test_best_so_far_only_ever_improves() -> None:
    low = marks(page("w", SPACE, "minimize", study([0.9, 0.4, None, 0.6, 0.3])), "progress")
    assert (low["improvement"]["x"], low["improvement"]["y"]) == ([0, 1, 4], [0.9, 0.4, 0.3])
    assert (low["trial"]["x"], low["failed"]["x"]) == ([3], [2])
    high = marks(page("w", SPACE, "maximize", study([0.9, 0.4, None, 0.6, 1.3])), "progress")
    assert high["improvement"]["x"] == [0, 4]
    assert high["best so far"]["y"] == [0.9, 1.3, 1.3]


def test_a_pruned_trial_is_shown_but_is_never_the_best() -> None:
    pruned = trial(1, None, state=TrialState.PRUNED)
    pruned.intermediate_values = {0: 0.5, 1: 0.1}
    html = page("w", SPACE, "minimize", [trial(0, 0.4), pruned])
    assert marks(html, "progress")["pruned, last value"]["y"] == [0.1]
    assert "trial 0; looking for the lowest" in Reader(html).words


def test_an_infinite_value_counts_as_failed() -> None:
    html = page("w", SPACE, "minimize", study([0.4, math.inf, -math.inf]))
    assert marks(html, "progress")["failed"]["x"] == [1, 2]
    assert "Trials done 1 2 failed" in Reader(sections(html)["summary"]).words


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [(3, 0, "too few"), (18, 2, "in line with"), (10, 10, "too sure of itself"), (60, 0, "more careful than")],
)
def test_coverage_is_counted_and_judged(inside: int, outside: int, words: str) -> None:
    values = [0.6] * inside + [0.9] * outside
    html = page("w", SPACE, "minimize", [trial(i, y, explanation(0.5)) for i, y in enumerate(values)])
    found = Reader(sections(html)["calibration"]).words
    assert f"{inside} of {inside + outside} values" in found
    assert words in found
    drawn = marks(html, "calibration")
    assert len(drawn["inside the interval"]["x"]) == inside
    assert len(drawn.get("outside", {"x": []})["x"]) == outside


def test_a_wild_prediction_does_not_set_the_scale() -> None:
    trials = [trial(i, 0.5 + 0.01 * i, explanation(1e9 if i == 0 else 0.5)) for i in range(5)]
    plot = plots(page("w", SPACE, "minimize", trials))["plot-calibration"]
    low, high = (10**end for end in plot["layout"]["yaxis"]["range"])
    assert 0.3 < low < high < 1.0
    (arrow,) = (m for m in plot["data"] if "triangle-up" in m.get("marker", {}).get("symbol", ()))
    assert arrow["y"][arrow["marker"]["symbol"].index("triangle-up")] == pytest.approx(high)


def test_old_and_new_voices_and_trust() -> None:
    html = full_page()
    voices = marks(html, "voices")
    assert voices["old runs"]["y"] == [1.0] * 6
    assert voices["together"]["y"] == [0.75] * 6
    assert plots(html)["plot-trust"]["data"][0]["y"] == [0.75] * 6


def test_the_gate_is_shown_when_there_is_no_share_of_trust() -> None:
    sides = [True, False, True]
    trials = [trial(i, 0.1, explanation(trust=None, inside_gate=side)) for i, side in enumerate(sides)]
    html = page("w", SPACE, "minimize", trials)
    gate = marks(html, "trust")
    assert (gate["inside the gate"]["x"], gate["outside"]["x"]) == ([0, 2], [1])
    assert "inside the gate" in Reader(sections(html)["summary"]).words


def test_map_has_a_sample_of_the_old_runs_and_all_trials() -> None:
    html = full_page()
    points = marks(html, "map")
    assert len(points["old run"]["x"]) == 1500
    assert [len(points[name]["x"]) for name in ("new trial", "failed", "best")] == [4, 1, 1]
    assert points["best"]["text"] == ["4"]
    better = np.corrcoef(points["old run"]["x"], points["old run"]["marker"]["color"])[0, 1]
    assert better >= 0


def test_transfer_has_a_bar_and_a_row_for_every_task() -> None:
    html = full_page()
    bars = marks(html, "transfer")
    assert (bars["weight"]["x"], bars["gain"]["x"]) == ([0.5], [0.25])
    assert "task-a +0.50 +0.25 +0.90" in Reader(sections(html)["transfer"]).words


def test_table_of_trials() -> None:
    html = sections(full_page())["trials"]
    assert html.count("<tr") == 7
    words = Reader(html).words
    for expected in ("The old runs say better.", "running", "★ best", "1 good old run nearby", "task-a: 0.4, 5% away"):
        assert expected in words
    assert "<caption>" in html


def test_a_failed_trial_says_why() -> None:
    failed = trial(0)
    failed.user_attrs["error"] = "exit code 3"
    assert "exit code 3" in Reader(page("w", SPACE, "minimize", [failed])).words
