"""Any study renders: what is missing or odd is a gap with its reason, not an error."""

from __future__ import annotations

import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import create_trial
from report_pages import FEW, IDS, SPACE, WORDS, Reader, explanation, plots, sections, study, trial

from jumbo_bo.explain import Explanation
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report import page
from jumbo_bo.space.space import Space
from jumbo_bo.studies import NUMBERS

MANY_PARAMETERS = Space({f"p{i}": FloatDistribution(0, 1) for i in range(30)})


@pytest.mark.parametrize(
    ("values", "space"),
    [
        ([], SPACE),
        ([0.5], SPACE),
        ([None] * 4, SPACE),
        ([0.25] * 12, SPACE),
        ([10.0**e for e in range(-8, 9)], SPACE),
        ([-(10.0**e) for e in range(-8, 9)], SPACE),
        ([1e-300, 1e300, 1e-300], SPACE),
        ([-1e308, 1e308], SPACE),
        ([float(i % 97) for i in range(2000)], SPACE),
        (FEW, MANY_PARAMETERS),
    ],
    ids=["empty", "one", "failed", "constant", "wide", "negative", "extreme", "overflow", "2000", "30 parameters"],
)
@pytest.mark.parametrize("reasons", [None, explanation()], ids=["other sampler", "ours"])
def test_any_study_renders(values: list[float | None], space: Space, reasons: Explanation | None) -> None:
    html = page("w", space, "minimize", study(values, space=space, reasons=reasons))
    assert list(sections(html)) == IDS
    drawn = plots(html)
    for name in [name for name in IDS if name not in WORDS]:
        gap = "class=gap" in sections(html)[name]
        assert gap != (f"plot-{name}" in drawn), f"{name} has neither a plot nor a reason why not"


def test_wide_positive_values_get_a_log_axis() -> None:
    def kind(values: list[float | None]) -> str:
        return str(plots(page("w", SPACE, "minimize", study(values)))["plot-progress"]["layout"]["yaxis"]["type"])

    assert kind([1e-8, 1.0, 1e8]) == "log"
    assert kind([0.1, 0.2]) == kind([-1e-8, 1e8]) == "linear"


def test_missing_and_foreign_parameters_are_gaps_not_errors() -> None:
    odd = create_trial(
        params={"lr": 0.5, "other": 3},
        distributions={"lr": FloatDistribution(0, 1), "other": IntDistribution(0, 9)},
        value=0.1,
        user_attrs={NUMBERS: "not ours"},
    )
    odd.number = 0
    html = page("w", SPACE, "minimize", [odd, trial(1, 0.2)])
    assert "other" in Reader(sections(html)["trials"]).words
    assert [t["name"] for t in plots(html)["plot-parallel"]["data"]][-1] == "best tenth"  # the best has no place


def test_without_an_optimizer_the_page_says_that_the_old_runs_were_not_read() -> None:
    found = sections(page("w", SPACE, "minimize", study(FEW)))
    assert all("not read" in found[name] for name in ("transfer", "map"))
    cold = page("w", SPACE, "minimize", study(FEW), Optimizer(SPACE))
    assert "no old runs" in sections(cold)["map"]


def test_forgotten_trials_are_listed_but_not_drawn() -> None:
    trials = study([None, None, 0.4, None, 0.2], reasons=explanation())
    html = page("w", SPACE, "minimize", trials, left_out={0: "forgotten", 1: "forgotten"})
    assert "1 failed, 2 forgotten" in Reader(sections(html)["summary"]).words
    assert 'class="state-forgotten">forgotten<' in sections(html)["trials"]
    assert sections(html)["trials"].count(">failed<") == 1
    crosses = next(t for t in plots(html)["plot-progress"]["data"] if t["name"] == "failed")
    assert crosses["x"] == [3]
    assert all(0 not in t["x"] for name in ("trust", "voices") for t in plots(html)[f"plot-{name}"]["data"])


def test_trust_is_not_that_of_a_forgotten_trial() -> None:
    trials = [trial(0, 0.4, explanation(trust=0.25)), trial(1, None, explanation(trust=0.75))]
    assert (
        "25% of the model's predictions, at trial 0"
        in Reader(page("w", SPACE, "minimize", trials, left_out={1: "forgotten"})).words
    )
