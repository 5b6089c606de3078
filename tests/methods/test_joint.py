"""The joint GP judges the old runs: it sets them aside when the trials speak against them, and only then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import IntDistribution
from scipy.stats import norm

from jumbo_bo.bench.synthetic import random_smooth
from jumbo_bo.features import FeatureNet
from jumbo_bo.gp import fit
from jumbo_bo.history import History, Task
from jumbo_bo.kernel import cold_kernel
from jumbo_bo.methods import JumboJoint
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.pretrain import Pretraining, pretrain
from jumbo_bo.space import Array, Space

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


def run(net: FeatureNet, recipe: JumboJoint, trials: int = 12) -> Optimizer:
    optimizer = Optimizer(SPACE, net, "maximize", 20, recipe, seed=0)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, float(truth(SPACE.encode(suggestion.params)[None])[0]))
    return optimizer


def test_related_old_runs_keep_their_say(nets: dict[str, FeatureNet]) -> None:
    said = [s.why for s in run(nets["related"], JumboJoint()).suggestions]
    assert not any("set aside" in why for why in said)
    assert all("The old runs say" in why for why in said[2:])


def test_unrelated_old_runs_are_set_aside(nets: dict[str, FeatureNet]) -> None:
    found = run(nets["unrelated"], JumboJoint()).suggestions
    aside = ["set aside" in s.why for s in found]
    assert sum(aside) >= 4
    assert all(s.explanation.trust == 0.0 for s, out in zip(found, aside, strict=True) if out)
    never = run(nets["unrelated"], JumboJoint(guard=math.inf)).suggestions
    assert not any("set aside" in s.why for s in never)


def test_the_verdict_is_the_evidence(nets: dict[str, FeatureNet]) -> None:
    """The choice between the two models turns exactly where their evidences differ by the guard."""
    view = run(nets["unrelated"], JumboJoint(guard=math.inf), trials=8).view()
    joint = JumboJoint(guard=math.inf)(view).gp
    assert joint is not None
    against = view.fit("cold", cold_kernel(SPACE)).log_evidence - joint.log_evidence
    assert JumboJoint(guard=against - 0.01)(view).aside
    assert not JumboJoint(guard=against + 0.01)(view).aside


def test_the_second_trial_is_a_contrast(nets: dict[str, FeatureNet]) -> None:
    optimizer = Optimizer(SPACE, nets["related"], "maximize", 20, seed=3)
    first, second, third = (optimizer.ask() for _ in range(3))
    assert "contrast" in second.why
    assert "contrast" not in first.why + third.why
    other = Optimizer(SPACE, nets["related"], "maximize", 20, JumboJoint(contrast=False), seed=3)
    assert other.ask().params == first.params
    assert "contrast" not in other.ask().why
    assert len({Optimizer(SPACE, nets["related"], seed=s).ask().params["a"] for s in range(3)}) == 1, "the first is not"


def test_log_evidence_is_likelihood_times_prior() -> None:
    rng = np.random.default_rng(0)
    blocks, y = {"x": rng.uniform(size=(12, 2))}, rng.normal(size=12)
    kernel = cold_kernel(SPACE)
    gp = fit(kernel, blocks, y)
    median, sd = kernel.priors
    prior = norm.logpdf(gp.theta, median, sd).sum() - norm.logpdf(median, median, sd).sum()
    assert gp.log_evidence == pytest.approx(gp.log_likelihood + prior)
