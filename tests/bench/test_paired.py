from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from jumbo_bo.bench import paired
from jumbo_bo.space.space import Array


def flat(exponent: float, length: int = 2) -> Array:
    return np.full(length, 10.0**exponent)


FLOOR = dict.fromkeys("pqrs", 1e-06)


def test_paired_differences_and_their_interval_by_hand() -> None:
    """Three problems with one seed, whatever the seed does to both cancels; 27 resamples, counted out."""
    hard, gaps = {"p": 0.0, "q": 3.0, "r": -2.0}, {"p": 0.5, "q": -1.0, "r": 2.0}
    curves = {(p, "ref"): {4: flat(x)} for p, x in hard.items()}
    curves |= {(p, "m"): {4: flat(hard[p] + gap), 5: flat(9.0)} for p, gap in gaps.items()}  # seed 5 has no partner
    found = paired.against(curves, FLOOR, "ref", [1])["m"]
    every = [np.mean([gaps[p] for p in drawn]) for drawn in product("pqr", repeat=3)]
    for cell in found.differences:  # at trial 1, and the area
        assert cell.mean == pytest.approx(0.5)
        assert cell.low == pytest.approx(np.sort(every)[0])  # 1 of 27 is more than 2.5 %
        assert cell.high == pytest.approx(np.sort(every)[-1])
    assert (found.problems, found.pairs) == (3, 3)
    assert found.outcomes[-1] == (1, 0, 2)
    itself = paired.against(curves, FLOOR, "ref", [1])["ref"]
    assert itself.differences[0] == (0.0, 0.0, 0.0)
    assert itself.outcomes[0] == (0, 3, 0)


def test_differences_at_marks_and_of_the_area() -> None:
    curves = {
        ("p", "ref"): {s: np.array([1.0, 0.1, 0.1, 0.0]) for s in (0, 1)},
        ("p", "m"): {s: np.array([10.0, 10.0, 0.1, 0.01]) for s in (0, 1)},
    }
    found = paired.against(curves, {"p": 0.01}, "ref", [1, 4])["m"]
    assert [cell.mean for cell in found.differences] == pytest.approx([1, 0, (1 + 2 + 0 + 0) / 4])
    assert found.outcomes == [(0, 0, 1), (0, 1, 0), (0, 0, 1)]


def test_every_suite_has_the_same_weight() -> None:
    """Three problems of one suite say +1, one of another -2: by problem the method is worse, by suite better."""
    suites = {"p": "x", "q": "x", "r": "x", "s": "y"}
    curves = {(p, "ref"): {0: flat(0), 1: flat(0)} for p in suites}
    curves |= {(p, "m"): {0: flat(x), 1: flat(x)} for p, x in (("p", 1), ("q", 1), ("r", 1), ("s", -2))}
    assert paired.against(curves, FLOOR, "ref", [2])["m"].differences[0].mean == pytest.approx(0.25)
    assert paired.against(curves, FLOOR, "ref", [2], suites)["m"].differences[0].mean == pytest.approx(-0.5)


def test_a_tie_is_within_the_tolerance_by_the_mean_over_seeds() -> None:
    t = paired.TIE
    assert paired.outcomes_of(np.array([-1.01 * t, -0.99 * t, 0.0, 0.99 * t, 1.01 * t, 1.0])) == (1, 3, 2)
    curves = {("p", "ref"): {0: flat(0), 1: flat(0)}, ("p", "m"): {0: flat(2), 1: flat(-2)}}
    assert paired.against(curves, FLOOR, "ref", [2])["m"].outcomes[0] == (0, 1, 0)
    swapped = paired.against(curves, FLOOR, "m", [2])["ref"]
    assert swapped.outcomes[0] == (0, 1, 0)


def test_swapping_method_and_reference_turns_every_sign(rng: np.random.Generator) -> None:
    curves = {(p, m): {s: rng.uniform(size=5) for s in range(3)} for p in "pqr" for m in "ab"}
    there, back = paired.against(curves, FLOOR, "a", [1, 5])["b"], paired.against(curves, FLOOR, "b", [1, 5])["a"]
    for one, other in zip(there.differences, back.differences, strict=True):
        assert one == pytest.approx((-other.mean, -other.high, -other.low))
    assert [cell[::-1] for cell in back.outcomes] == there.outcomes


def test_failed_trials_count_as_the_worst_and_problems_without_a_result_not_at_all() -> None:
    curves = {
        ("p", "ref"): {0: np.array([100.0, 1.0]), 1: np.array([1.0, 1.0])},
        ("p", "m"): {0: np.array([np.inf, 1.0]), 1: np.array([np.inf, np.inf])},
        ("q", "ref"): {0: np.full(2, np.inf)},
        ("q", "m"): {0: np.full(2, np.inf)},
    }
    found = paired.against(curves, FLOOR, "ref", [1, 2])["m"]
    assert [cell.mean for cell in found.differences] == pytest.approx([(0 + 2) / 2, (0 + 2) / 2, (0 + 2) / 2])
    assert (found.problems, found.pairs) == (1, 2)
    curves["p", "random"] = {0: np.array([1.0, 1.0])}
    assert [(r.problem, r.cold) for r in paired.ratios(curves, FLOOR, ["m"])["m"]] == [("p", "random")]


def test_a_method_that_lacks_problems_has_those_it_shares() -> None:
    suites = {"p": "x", "q": "y", "r": "y"}
    curves = {(p, "ref"): {0: flat(0), 1: flat(0)} for p in suites}
    curves |= {("q", "part"): {1: flat(1), 7: flat(9)}, ("q", "apart"): {8: flat(1)}, ("s", "away"): {0: flat(1)}}
    found = paired.against(curves, FLOOR, "ref", [2], suites)
    assert list(found) == ["ref", "part"]
    assert (found["part"].problems, found["part"].pairs) == (1, 1)
    mean, low, high = found["part"].differences[0]
    assert mean == pytest.approx(1)  # as if its suite were the only one
    assert np.isnan([low, high]).all()


def test_the_ratio_is_to_the_cold_method_that_did_best_on_the_problem() -> None:
    curves = {
        ("p", "m"): {0: flat(1), 1: flat(2)},
        ("p", "gp-ucb"): {0: flat(0), 1: flat(2)},  # best over both seeds
        ("p", "tpe"): {0: flat(4), 1: flat(-1)},
        ("p", "rival"): {0: flat(-9), 1: flat(-9)},  # looks at old runs
        ("q", "m"): {0: flat(0)},
        ("q", "random"): {0: flat(1), 9: flat(-9)},  # seed 9 has no partner
        ("r", "m"): {0: flat(0)},  # no cold method there
    }
    found = paired.ratios(curves, dict.fromkeys("pqr", 1e-12), ["m", "gp-ucb", "nobody"])
    assert [ratio.problem for ratio in found["m"]] == ["p", "q"]  # the worst first
    worst, other = found["m"]
    assert worst.value == pytest.approx(10**0.5)
    assert (worst.cold, worst.seeds, worst.worse) == ("gp-ucb", 2, True)
    assert worst.error == pytest.approx(0.5)  # of 1 and 0: sd sqrt(1 / 2), over sqrt(2)
    assert not worst.clearly
    assert other.value == pytest.approx(0.1)
    assert (other.cold, other.worse) == ("random", False)
    assert [ratio.value for ratio in found["gp-ucb"]] == pytest.approx([1.0])  # nothing cold is better than the best
    assert found["nobody"] == []


@pytest.mark.parametrize(("value", "error", "worse", "clearly"), [
    (1.049, 0.0, False, False),
    (1.06, 0.001, True, True),
    (1.06, 0.01, True, False),
    (9.0, np.nan, True, False),
])  # fmt: skip
def test_what_counts_as_worse(value: float, error: float, worse: bool, clearly: bool) -> None:
    ratio = paired.Ratio("p", value, error, "tpe", 3)
    assert (ratio.worse, ratio.clearly) == (worse, clearly)


def test_the_best_cold_method_alone_is_never_worse(rng: np.random.Generator) -> None:
    curves = {(p, m): {s: rng.uniform(size=5) for s in range(3)} for p in "pqr" for m in ("tpe", "random", "cma-es")}
    found = paired.ratios(curves, FLOOR, ["tpe", "random", "cma-es"])
    for problem in "pqr":
        own = [ratio.value for ratios in found.values() for ratio in ratios if ratio.problem == problem]
        assert min(own) == pytest.approx(1.0)
