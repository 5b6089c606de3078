"""The joint GP judges the old runs: it sets them aside when the trials speak against them, and only then."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.stats import norm

import small_problems
from jumbo_bo.bench.synthetic import random_smooth
from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.methods import GPUCB, JumboJoint
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models.gp import fit, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.space.space import Array, Params, Space
from small_problems import MIXED, learned_nets

SPACE = Space({"a": IntDistribution(0, 19), "b": IntDistribution(0, 19)})


def truth(u: Array) -> Array:
    result: Array = -np.sum((u - [0.25, 0.7]) ** 2, axis=1)
    return result


@pytest.fixture(scope="module")
def nets() -> dict[str, FeatureNet]:
    u = SPACE.grid()
    stranger = random_smooth(np.random.default_rng(4), 2, 0.15)(u)
    sources = {"related": truth(u) + 0.05 * u[:, 0], "unrelated": stranger}
    return {
        name: pretrain(History(SPACE, (Task(name, u, y),)), Pretraining(max_steps=4000)) for name, y in sources.items()
    }


@pytest.fixture(scope="module")
def small_nets() -> dict[Space, FeatureNet]:
    return learned_nets()


def run(net: FeatureNet, recipe: JumboJoint, trials: int = 12) -> Optimizer:
    optimizer = Optimizer(SPACE, net, "maximize", 20, recipe, seed=0)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, float(truth(SPACE.encode(suggestion.params)[None])[0]))
    return optimizer


def test_related_old_runs_keep_their_say(nets: dict[str, FeatureNet]) -> None:
    said = [s.why for s in run(nets["related"], JumboJoint()).suggestions]
    assert not any("set aside" in why for why in said)
    assert all("Old runs rate this" in why for why in said[2:])


def test_unrelated_old_runs_are_set_aside(nets: dict[str, FeatureNet]) -> None:
    found = run(nets["unrelated"], JumboJoint()).suggestions
    aside = ["set aside" in s.why for s in found]
    assert sum(aside) >= 4
    assert all(s.explanation.trust == 0.0 for s, out in zip(found, aside, strict=True) if out)
    never = run(nets["unrelated"], JumboJoint(guard=math.inf)).suggestions
    assert not any("set aside" in s.why for s in never)


def test_the_verdict_is_by_the_posterior_of_theta(nets: dict[str, FeatureNet]) -> None:
    """The choice between the two models turns exactly where their log posteriors differ by the guard."""
    view = run(nets["unrelated"], JumboJoint(guard=math.inf), trials=8).view()
    chosen = JumboJoint(guard=math.inf)(view).surrogate
    assert chosen is not None
    ((_, joint),) = chosen.gps
    assert joint is not None
    against = view.fit(cold_kernel(SPACE)).log_posterior - joint.log_posterior
    assert JumboJoint(guard=against - 0.01)(view).aside
    assert not JumboJoint(guard=against + 0.01)(view).aside


def test_the_second_trial_is_a_contrast(nets: dict[str, FeatureNet]) -> None:
    optimizer = Optimizer(SPACE, nets["related"], "maximize", 20, "jumbo-joint", seed=3)
    first, second, third = (optimizer.ask() for _ in range(3))
    assert "contrast" in second.why
    assert "contrast" not in first.why + third.why
    assert first.explanation.beta == pytest.approx(2 * math.exp(-3 / 20))  # nothing to be stalled by
    other = Optimizer(SPACE, nets["related"], "maximize", 20, JumboJoint(contrast=False), seed=3)
    assert other.ask().params == first.params
    assert "contrast" not in other.ask().why
    firsts = [Optimizer(SPACE, nets["related"], method="jumbo-joint", seed=s).ask() for s in range(3)]
    assert len({first.params["a"] for first in firsts}) == 1, "the first is not"


def test_the_kernel_holds_the_old_runs(nets: dict[str, FeatureNet]) -> None:
    view = run(nets["related"], JumboJoint(), trials=3).view()
    kernel = joint_kernel(view)
    assert kernel.mean == "m"
    assert [(t.block, t.kind) for t in kernel.terms] == [("1", "linear"), ("g", "linear"), ("x", "matern52")]
    assert kernel.terms[1].groups == tuple(range(view.width("g")))
    assert kernel.terms[1].variance == (1 / view.width("g"), 1.0)
    assert kernel.terms[2:] == cold_kernel(SPACE).terms
    latent = joint_kernel(view, latent=True).terms[3]
    width = view.width("h")
    assert (latent.block, latent.kind, latent.groups) == ("h", "matern52", (0,) * width)
    assert (latent.variance, latent.length) == ((0.3, 1.0), (math.sqrt(width), 1.0))
    assert joint_kernel(Optimizer(SPACE).view()) == cold_kernel(SPACE)


def test_the_trials_judge_from_the_second_on(small_nets: dict[Space, FeatureNet]) -> None:
    """One trial cannot: it has nothing to differ from. With two heads each may explain half."""
    optimizer = Optimizer(MIXED, small_nets[MIXED], n_trials=20, method="jumbo-joint")
    harsh = JumboJoint(guard=-math.inf, contrast=False)
    params = [MIXED.decode(u) for u in MIXED.sample(np.random.default_rng(0), 2)]
    verdicts = [harsh(optimizer.view()).aside]
    for one in params:
        optimizer.tell(one, small_problems.loss(one))
        verdicts.append(harsh(optimizer.view()).aside)
    assert verdicts == [False, False, True]
    assert joint_kernel(optimizer.view()).terms[1].variance == (0.5, 1.0)
    assert not harsh(Optimizer(MIXED).view()).aside  # no old runs, nothing to set aside


def test_without_old_runs_it_starts_spread_out_and_is_a_plain_gp() -> None:
    optimizer = Optimizer(SPACE, direction="maximize", n_trials=20, method=JumboJoint(initial=2))
    plain = Optimizer(SPACE, direction="maximize", n_trials=20, method=GPUCB(beta0=2.0, initial=2))
    for _ in range(2):
        first, other = optimizer.ask(), plain.ask()
        assert first.params == other.params
        assert "Initial point" in first.why
        optimizer.tell(first, float(truth(SPACE.encode(first.params)[None])[0]))
        plain.tell(first.params, float(truth(SPACE.encode(first.params)[None])[0]))
    third = optimizer.ask()
    assert "Initial point" not in third.why
    assert third.explanation.beta == pytest.approx(2 * math.exp(-3 * 3 / 20))  # beta0 exp(-rate t / T)


@pytest.mark.parametrize(("beta0", "pushes"), [(1.0, 1), (0.3, 2), (0.1, 3)])
def test_a_model_that_promises_nothing_new_explores_more(beta0: float, pushes: int) -> None:
    """All points around the best one are known to be worse. Beta is turned up, by 4 each time, just until some point's
    score is above the best trial."""
    space = Space({"a": IntDistribution(0, 40)})
    optimizer = Optimizer(space, direction="maximize", n_trials=30, method=JumboJoint(beta0))
    for a in (0, 4, 8, 9, 10, 11, 12, 16, 20):
        optimizer.tell({"a": a}, -abs(a - 10) / 10)
    view = optimizer.view()
    choice = JumboJoint(beta0)(view)
    assert choice.beta == pytest.approx(4**pushes * beta0 * math.exp(-3 * 10 / 30))
    assert choice.surrogate is not None
    known = posterior(choice.surrogate.gps[0][1], view.domain.featurise(view.u)).mean.max()
    for beta, promises in ((choice.beta / 4, False), (choice.beta, True)):
        scores = ucb(choice.surrogate.predict, beta)(view.domain.blocks)
        scores[view.domain.rows_of(view.taken)] = -np.inf
        assert (scores.max() >= known) == promises


def test_a_small_promise_right_next_to_a_trial_is_none() -> None:
    """On a continuous space the model could go on for ever beside its best trial."""
    line = Space({"x": FloatDistribution(0, 1)})

    def beta(tried: Sequence[float], beta0: float) -> float:
        """How much exploration was turned up."""
        optimizer = Optimizer(line, direction="maximize", n_trials=40, method=JumboJoint(beta0))
        for x in tried:
            optimizer.tell({"x": x}, -((x - 0.3) ** 2))
        choice = JumboJoint(beta0)(optimizer.view())
        assert choice.beta is not None
        return choice.beta / (beta0 * math.exp(-3 * (len(tried) + 1) / 40))

    well_known = (0.0, 0.1, 0.2, 0.25, 0.29, 0.3, 0.31, 0.35, 0.4, 0.55, 0.7, 0.85, 1.0)
    assert beta(well_known, 0.01) == pytest.approx(4**4)  # PUSHES times
    assert beta((0.0, 0.2, 1.0), 2.0) == pytest.approx(1.0)  # there is something to be found


def test_log_posterior_is_likelihood_times_prior() -> None:
    rng = np.random.default_rng(0)
    blocks, y = {"x": rng.uniform(size=(12, 2))}, rng.normal(size=12)
    kernel = cold_kernel(SPACE)
    gp = fit(kernel, blocks, y)
    median, sd = kernel.priors
    prior = norm.logpdf(gp.theta, median, sd).sum() - norm.logpdf(median, median, sd).sum()
    assert gp.log_posterior == pytest.approx(gp.log_likelihood + prior)


def test_first_suggestion_with_old_runs_already_uses_them(small_nets: dict[Space, FeatureNet]) -> None:
    """Over several seeds the joint GP starts far better than chance."""
    first = [Optimizer(MIXED, small_nets[MIXED], n_trials=10, seed=s).ask().params for s in range(5)]
    chance = [small_problems.loss(MIXED.decode(u)) for u in MIXED.sample(np.random.default_rng(0), 500)]
    assert np.mean([small_problems.loss(p) for p in first]) < np.quantile(chance, 0.1)
    assert "Old runs" in Optimizer(MIXED, small_nets[MIXED], n_trials=10).ask().why


def test_joint_without_old_runs_finds_branins_minimum() -> None:
    space = Space({"a": FloatDistribution(-5, 10), "b": FloatDistribution(0, 15)})

    def branin(p: Params) -> float:
        a, b = p["a"], p["b"]
        return float(
            (b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a)
            + 10
        )

    ends = [small_problems.run(JumboJoint(), space, None, 40, seed=s, value=branin).best.value for s in range(3)]
    assert max(ends) < 0.397887 + 0.05


def test_joint_learns_from_an_inverted_past(small_nets: dict[Space, FeatureNet]) -> None:
    """The old runs have the opposite sign: the linear term turns its slope."""
    optimizer = small_problems.run("jumbo-joint", MIXED, small_nets[MIXED], 25, value=lambda p: -small_problems.loss(p))
    worst = max(small_problems.loss(MIXED.decode(u)) for u in MIXED.sample(np.random.default_rng(0), 2000))
    assert -optimizer.best.value > 0.9 * worst
