"""One contract for every method: in bounds, right types, reproducible, and hard to upset."""

import math

import numpy as np
import pytest

from jumbo_bo.data.history import History
from jumbo_bo.learning import past_file
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.methods import (
    FSBO,
    METHODS,
    BestFirst,
    BoxGPUCB,
    HyperBO,
    JumboPrinted,
    MTBohamiann,
    OfflineDKL,
    Recipe,
)
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import SpaceExhausted
from small_problems import MIXED, SMALL, follow, learned_nets, loss, old_runs


@pytest.fixture(scope="module")
def nets():
    return learned_nets()


# Recipes that take long at their defaults, with less work per suggestion; and one whose first trials are the same for
# every seed, with fewer of them.
QUICK: dict[str, Recipe] = {
    "fsbo": FSBO(steps=300),
    "hyperbo": HyperBO(steps=300, rows=32),
    "mt-bohamiann": MTBohamiann(units=10, chains=2, samples=3, thin=10, burn_in=2, learn_rounds=3, adapt_rounds=1),
    "best-first": BestFirst(first=2),
}


NEEDS_TORCH = ("optuna-gp",)  # tested by make test-interop


@pytest.fixture(params=[pytest.param(m, marks=pytest.mark.interop) if m in NEEDS_TORCH else m for m in METHODS])
def method(request):
    return QUICK.get(request.param, METHODS[request.param])


@pytest.fixture(scope="module")
def rows():
    return {space: old_runs(space) for space in (MIXED, SMALL)}


@pytest.fixture
def past(method, nets, rows):
    """Old runs in the form the method takes: a net, or the rows themselves."""
    return nets if method.learns is FeatureNet else rows


LEARNED = {}


def study(method, space, history, trials, seed=0, **options):
    """What a method learns from the rows is learned once for all tests."""
    optimizer = Optimizer(space, history, n_trials=trials, method=method, seed=seed, **options)
    if isinstance(history, History):
        key = optimizer.recipe, history.fingerprint, seed
        if key not in LEARNED:
            LEARNED[key] = optimizer.past
        optimizer.past = LEARNED[key]
    return optimizer


def run(method, space, history, trials, seed=0, value=loss, **options):
    return follow(study(method, space, history, trials, seed, **options), trials, value)


@pytest.mark.parametrize("space", [MIXED, SMALL], ids=["mixed", "finite"])
def test_in_bounds_right_types_and_a_reason(method, space, past):
    optimizer = run(method, space, past[space], 6)
    for suggestion in optimizer.suggestions:
        assert list(suggestion.params) == list(space.names)
        for name, value in suggestion.params.items():
            dist = space.distributions[name]
            assert dist._contains(dist.to_internal_repr(value))
            expected = {"lr": float, "layers": int, "batch": int, "act": str, "a": int, "b": str}[name]
            assert type(value) is expected
        assert suggestion.why.endswith(".")
        assert "\n" not in suggestion.why
        assert math.isnan(suggestion.predicted.sd) or suggestion.predicted.sd >= 0


def test_same_seed_same_suggestions_also_after_a_resume(method, past):
    whole = run(method, MIXED, past[MIXED], 13)
    resumed = study(method, MIXED, past[MIXED], 13)
    for suggestion in whole.suggestions[:-1]:
        resumed.tell(suggestion.params, loss(suggestion.params))
    assert resumed.ask().params == whole.suggestions[-1].params
    other = run(method, MIXED, past[MIXED], 3, seed=1)
    assert [s.params for s in other.suggestions] != [s.params for s in whole.suggestions[:3]]


def test_never_repeats_on_a_finite_space_and_says_when_it_is_exhausted(method, past):
    optimizer = run(method, SMALL, past[SMALL], 10)
    assert len({tuple(s.params.values()) for s in optimizer.suggestions}) == 10
    assert optimizer.best == ({"a": 3, "b": "y"}, 0)
    with pytest.raises(SpaceExhausted):
        optimizer.ask()


def test_what_is_learned_from_the_rows_depends_on_nothing_else(method, rows):
    """The other tests share it."""
    if method.learns in (None, FeatureNet):
        pytest.skip("it does not look at rows")
    first, again = (Optimizer(SMALL, rows[SMALL], n_trials=5, method=method).ask() for _ in range(2))
    assert first.params == again.params


def test_what_was_learned_can_be_saved_and_used_by_another_process(method, past, tmp_path):
    if method.learns is None:
        pytest.skip("it does not look at old runs")
    first = run(method, MIXED, past[MIXED], 4)
    first.past.save(tmp_path / "past.safetensors")
    loaded = method.learns.load(tmp_path / "past.safetensors", MIXED)
    before, after = past_file.tensors(first.past), past_file.tensors(loaded)
    assert {name: a.tobytes() for name, a in before.items()} == {name: a.tobytes() for name, a in after.items()}
    again = run(method, MIXED, loaded, 4)
    assert [s.params for s in again.suggestions] == [s.params for s in first.suggestions]
    with pytest.raises(ValueError, match="another space"):
        method.learns.load(tmp_path / "past.safetensors", SMALL)
    with pytest.raises(ValueError, match="another space"):
        Optimizer(SMALL, loaded, method=method)


def test_what_another_kind_of_method_learned_is_refused(method, nets, rows):
    if method.learns is None:
        pytest.skip("it does not look at old runs")
    other = METHODS["rgpe"] if method.learns is FeatureNet else None
    foreign = study(other, SMALL, rows[SMALL], 3).past if other else nets[SMALL]
    with pytest.raises(ValueError, match="pass their History"):
        Optimizer(SMALL, foreign, method=method)


def test_predictions_are_those_of_the_suggestion(method, past):
    """Of any configuration, without asking for a suggestion; they change nothing."""
    optimizer = run(method, MIXED, past[MIXED], 7)
    others = [MIXED.decode(u) for u in MIXED.sample(np.random.default_rng(1), 3)]
    if method.surrogate(optimizer.view()) is None:
        with pytest.raises(ValueError, match="has no model"):
            optimizer.predict(others)
        return
    before = optimizer.predict(others)
    assert all(p.low <= p.mean <= p.high and p.sd >= 0 for p in before)
    assert optimizer.predict([]) == []
    again = run(method, MIXED, past[MIXED], 7)
    assert again.predict(others) == before
    suggestion = optimizer.ask()
    if math.isfinite(suggestion.predicted.mean) and not isinstance(method, JumboPrinted | OfflineDKL):  # of two GPs
        assert again.predict([suggestion.params])[0] == pytest.approx(suggestion.predicted, rel=1e-6)


def test_without_old_runs(method):
    if isinstance(method, BoxGPUCB):
        with pytest.raises(ValueError, match="needs at least 2 old tasks"):
            run(method, MIXED, None, 5)
        return
    assert run(method, MIXED, None, 5).best is not None


@pytest.mark.parametrize(
    "value",
    [lambda p: 1.0, lambda p: math.nan, lambda p: math.inf, lambda p: 1e300 * loss(p), lambda p: -1e-300, lambda p: 0],
    ids=["constant", "nan", "inf", "huge", "tiny", "zero"],
)
def test_survives_strange_values(method, value, past):
    optimizer = run(method, MIXED, past[MIXED], 5, value=value)
    assert len(optimizer.suggestions) == 5


def test_survives_repeated_trials(method, past):
    optimizer = study(method, MIXED, past[MIXED], 10)
    params = MIXED.decode(np.full(4, 0.5))
    for i in range(6):
        optimizer.tell(params, 1.0 + 0.1 * i)
    assert optimizer.ask().params != params


def test_batches_differ_from_each_other(method, past):
    optimizer = run(method, MIXED, past[MIXED], 4)
    batch = optimizer.ask_many(4)
    assert len({tuple(s.params.values()) for s in batch}) == 4
    for suggestion in reversed(batch):
        optimizer.tell(suggestion, loss(suggestion.params))
    assert len(optimizer.suggestions) == 8


def test_candidate_list(method, past):
    rows = [MIXED.decode(u) for u in MIXED.sample(np.random.default_rng(0), 12)]
    optimizer = run(method, MIXED, past[MIXED], 12, candidates=rows)
    assert sorted(map(str, rows)) == sorted(str(s.params) for s in optimizer.suggestions)


def test_a_failed_configuration_is_not_proposed_again(method, past):
    optimizer = study(method, SMALL, past[SMALL], 10)
    seen = []
    for _ in range(10):
        suggestion = optimizer.ask()
        seen.append(tuple(suggestion.params.values()))
        optimizer.fail(suggestion)
    assert len(set(seen)) == 10
    assert optimizer.best is None
