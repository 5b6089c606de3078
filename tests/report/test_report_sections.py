"""The sections of the report: what each says about a study, and what is drawn."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from optuna.trial import TrialState
from report_pages import IDS, SPACE, WORDS, Reader, explanation, full_page, marks, plots, sections, study, trial

from jumbo_bo.report import page


def test_all_sections_in_order_with_one_heading_each() -> None:
    html = full_page()
    assert list(sections(html)) == IDS
    single = {f"plot-{name}" for name in IDS if name not in (*WORDS, "slices")}
    assert set(plots(html)) == {*single, *(f"plot-slices-{k}" for k in range(SPACE.d))}
    headings = [tag for tag, _ in Reader(html).tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1", "h2", "h3", *["h2"] * (len(IDS) - 1)]


def test_summary() -> None:
    words = Reader(sections(full_page())["summary"]).words
    best_value = "Best so far: 0.3, in trial 4; 4 trials have a value."
    for expected in ("0.3", best_value, "1 failed", "1 running", "50%", "The old runs help a lot."):
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
    assert "Best so far: 0.4, in trial 0; 1 trial has a value." in Reader(html).words


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
    before, now = plots(html)["plot-trust"]["data"]
    assert before["y"] == [0.75] * 6
    assert (now["x"], now["y"]) == ([6], [0.5])


def test_the_trust_of_the_report_is_the_same_everywhere() -> None:
    """That of the transfer report; without one, that of the last trial."""
    assert "Trust in the old runs 50% of the model's predictions, now" in Reader(sections(full_page())["summary"]).words
    html = page("w", SPACE, "minimize", [trial(0, 0.4, explanation())])
    assert "75% of the model's predictions, at trial 0" in Reader(sections(html)["summary"]).words
    assert len(plots(html)["plot-trust"]["data"]) == 1


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
    assert (bars["weight"]["x"], bars["error"]["x"]) == ([0.5], [pytest.approx(math.exp(-0.25) - 1)])
    assert "task-a +0.50 -22% +0.90" in Reader(sections(html)["transfer"]).words


@pytest.mark.parametrize(("direction", "bad"), [("minimize", 50.0), ("maximize", -50.0)])
def test_a_bad_trial_does_not_flatten_the_curve(direction: str, bad: float) -> None:
    values = [0.5, 0.4, bad, 0.45, 0.6, 0.55]
    html = page("w", SPACE, direction, study(values))
    drawn, axis = marks(html, "progress"), plots(html)["plot-progress"]["layout"]["yaxis"]
    assert axis["type"] == "linear"
    low, high = axis["range"]
    assert 0.3 < low < 0.4 < 0.6 < high < 0.7
    far = drawn["far off"]
    assert (far["x"], far["text"]) == ([2], [f"{bad:.4g}"])
    assert all(low <= y <= high for trace in drawn.values() for y in trace["y"])
    assert 2 not in [*drawn["trial"]["x"], *drawn["improvement"]["x"]]


def test_what_matters_and_one_parameter_at_a_time() -> None:
    html = full_page()
    bars = plots(html)["plot-importance"]["data"][0]
    assert sorted(bars["y"]) == [0, 1, 2]
    assert all(0 <= low <= share <= 1.2 for low, share in zip(bars["error_x"]["arrayminus"], bars["x"], strict=True))
    for k in range(SPACE.d):
        drawn = marks(html, f"slices-{k}")
        assert {"predicted", "old runs", "best"} <= set(drawn)
        assert drawn["best"]["y"] == [0.3]
    assert "90%" in Reader(sections(html)["importance"]).words


def test_space_and_durations() -> None:
    found = sections(full_page())
    words = Reader(found["space"]).words
    assert "units an integer in [16, 512]" in words
    assert "lr a number in [1e-05, 0.1], on a log scale" in words
    assert (
        "5 finished trials took 4 min in all, half of them at most 45 s each, the longest 45 s."
        in Reader(found["durations"]).words
    )


def test_no_invented_words() -> None:
    text = re.sub(r"<script>.*?</script>", "", full_page(), flags=re.DOTALL)
    assert not re.search(r"\bnats?\b|upside down|main direction|times as (likely|expected)", text)


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
