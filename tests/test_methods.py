"""One contract for every method: in bounds, right types, reproducible, and hard to upset."""

import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.acquisition import in_gate, ucb
from jumbo_bo.argmax import SpaceExhausted
from jumbo_bo.history import History, Task
from jumbo_bo.methods import GPUCB, METHODS, BoxGPUCB, Jumbo, JumboJoint, Learner, MTBohamiann, OfflineDKL, Recipe
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.pretrain import Pretraining, pretrain
from jumbo_bo.space import Space

MIXED = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "layers": IntDistribution(1, 4),
        "act": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "batch": CategoricalDistribution([16, 32, 64]),
    }
)
SMALL = Space({"a": IntDistribution(0, 4), "b": CategoricalDistribution(["x", "y"])})


def loss(params):
    if "a" in params:
        return (params["a"] - 3) ** 2 + (params["b"] == "x")
    return (math.log10(params["lr"]) + 2.5) ** 2 + 0.3 * abs(params["layers"] - 2) + (params["act"] != "tanh")


def old_runs(space, tasks=2, n=60):
    rng = np.random.default_rng(7)
    made = []
    for k in range(tasks):
        u = space.sample(rng, n)
        y = np.array([-loss(space.decode(row)) - 0.1 * k for row in u])
        made.append(Task(f"old {k}", u, y))
    return History(space, tuple(made))


@pytest.fixture(scope="module")
def nets():
    quick = Pretraining(max_steps=300, least_r2=None)
    return {space: pretrain(old_runs(space), quick) for space in (MIXED, SMALL)}


# Recipes that take long at their defaults, with less work per suggestion.
QUICK: dict[str, Recipe] = {
    "mt-bohamiann": MTBohamiann(units=10, chains=2, samples=3, thin=10, burn_in=2, learn_rounds=3, adapt_rounds=1)
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
    return rows if isinstance(method, Learner) else nets


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
    optimizer = study(method, space, history, trials, seed, **options)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


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
    if not isinstance(method, Learner):
        pytest.skip("it does not look at rows")
    first, again = (Optimizer(SMALL, rows[SMALL], n_trials=5, method=method).ask() for _ in range(2))
    assert first.params == again.params


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


@pytest.mark.parametrize("space", [MIXED, SMALL], ids=["mixed", "finite"])
@pytest.mark.parametrize("paper_fit", [False, True])
def test_infinite_threshold_gives_exactly_the_points_of_gp_ucb(space, paper_fit, nets):
    cold = run(GPUCB(paper_fit=paper_fit), space, nets[space], 8)
    jumbo = run(Jumbo(threshold=math.inf, paper_fit=paper_fit), space, nets[space], 8)
    assert [s.params for s in jumbo.suggestions] == [s.params for s in cold.suggestions]


@pytest.mark.parametrize("space", [MIXED, SMALL], ids=["mixed", "finite"])
@pytest.mark.parametrize("block", ["h", "g"])
def test_empty_gate_gives_exactly_the_points_of_offline_dkl(space, block, nets):
    warm = run(OfflineDKL(warm=block), space, nets[space], 8)
    jumbo = run(Jumbo(threshold=-1e-3, warm=block), space, nets[space], 8)
    assert [s.params for s in jumbo.suggestions] == [s.params for s in warm.suggestions]


def test_jumbo_stays_in_the_constrained_gate_and_reports_it(nets):
    optimizer = run(Jumbo(gate="constrained"), SMALL, nets[SMALL], 4)
    view = optimizer.view()
    choice = optimizer.recipe(view)
    assert choice.inside_gate
    assert "inside the warm gate" in optimizer.ask().why


def test_reported_gate_state_equals_algorithm_1(nets):
    """Recomputed from the two GPs of the view, over all points of the space."""
    from jumbo_bo.methods.jumbo import warm_kernel

    optimizer = run(Jumbo(threshold=0.05), SMALL, nets[SMALL], 5)
    view = optimizer.view()
    choice = optimizer.recipe(view)
    warm = ucb(view.model("warm-h", warm_kernel(view, "h")), choice.beta)
    scores = warm(view.domain.blocks)
    assert choice.inside_gate == bool(in_gate(scores, scores.max(), 0.05)[choice.best.index])


def test_first_suggestion_with_old_runs_already_uses_them(nets):
    """Over several seeds the joint GP starts far better than chance."""
    first = [Optimizer(MIXED, nets[MIXED], n_trials=10, seed=s).ask().params for s in range(5)]
    chance = [loss(MIXED.decode(u)) for u in MIXED.sample(np.random.default_rng(0), 500)]
    assert np.mean([loss(p) for p in first]) < np.quantile(chance, 0.1)
    assert "old runs" in Optimizer(MIXED, nets[MIXED], n_trials=10).ask().why


def test_joint_without_old_runs_finds_branins_minimum():
    space = Space({"a": FloatDistribution(-5, 10), "b": FloatDistribution(0, 15)})

    def branin(p):
        a, b = p["a"], p["b"]
        return (
            (b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a)
            + 10
        )

    assert max(run(JumboJoint(), space, None, 40, seed=s, value=branin).best.value for s in range(3)) < 0.397887 + 0.05


def test_joint_learns_from_an_inverted_past(nets):
    """The old runs have the opposite sign: the linear term turns its slope."""
    optimizer = run("jumbo-joint", MIXED, nets[MIXED], 25, value=lambda p: -loss(p))
    worst = max(loss(MIXED.decode(u)) for u in MIXED.sample(np.random.default_rng(0), 2000))
    assert -optimizer.best.value > 0.9 * worst


@pytest.mark.parametrize(
    "recipe",
    [
        Jumbo(gate="constant"),
        Jumbo(gate="constrained", warm="g"),
        Jumbo(paper_fit=True, schedule="theory"),
        OfflineDKL(schedule="anytime"),
        JumboJoint(latent=True, schedule="theory"),
    ],
    ids=["constant", "constrained", "paper fit", "anytime", "latent"],
)
def test_options_of_the_recipes_work(recipe, nets):
    default = run(type(recipe)(), MIXED, nets[MIXED], 7)
    optimizer = run(recipe, MIXED, nets[MIXED], 7)
    assert optimizer.best is not None
    # An option that changes nothing is not wired.
    assert [s.params for s in optimizer.suggestions] != [s.params for s in default.suggestions]
