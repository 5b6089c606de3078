"""A net serves a space with other ranges: it says the same of every configuration that both spaces have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo import FeatureNet, Optimizer
from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.learning.moved import moved
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.models.gp import build, posterior
from jumbo_bo.models.kernel import Term, term_covariance
from jumbo_bo.models.population import alone, informed
from jumbo_bo.space.space import Space

OLD = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "kind": CategoricalDistribution(["x", "y", "z"]),
        "units": IntDistribution(8, 64, step=8),
        "layers": IntDistribution(1, 8, log=True),
        "rate": FloatDistribution(-1.0, 1.0),
    }
)
CHANGES = {
    "narrower": {"lr": FloatDistribution(1e-3, 1e-2, log=True), "rate": FloatDistribution(0.0, 0.5)},
    "wider": {"lr": FloatDistribution(1e-6, 1.0, log=True), "units": IntDistribution(0, 128, step=8)},
    "other steps": {"units": IntDistribution(10, 60), "rate": FloatDistribution(-1.0, 1.0, step=0.25)},
    "one value": {"units": IntDistribution(16, 16), "layers": IntDistribution(2, 16, log=True)},
}


@pytest.fixture(scope="module")
def net() -> FeatureNet:
    """With GPs on the rows, learned priors and failures."""
    rng = np.random.default_rng(0)
    tasks = []
    for k in range(3):
        u = OLD.sample(rng, 60)
        x = OLD.transform(u)
        y = np.sin(3 * x[:, 0] + k) + x[:, 1] - x[:, 4] * x[:, 6]
        tasks.append(Task(f"old {k}", u, y, failed=OLD.sample(rng, 5 * k)))
    return pretrain(History(OLD, tuple(tasks), direction="maximize"), Pretraining(max_steps=50))


def _term(gp: RowGP) -> Term:
    return Term("x", "matern52", gp.groups)


@pytest.mark.parametrize("change", CHANGES)
def test_the_same_is_predicted(net: FeatureNet, change: str) -> None:
    new = Space({**OLD.distributions, **CHANGES[change]})
    there = moved(net, OLD, new)
    rng, shared = np.random.default_rng(1), []
    while len(shared) < 20:  # configurations of both spaces
        params = new.decode(rng.random(new.d))
        try:
            shared.append((OLD.encode(params), new.encode(params)))
        except InputError:
            continue
    before, after = (
        space.transform(np.array(u)) for space, u in zip((OLD, new), zip(*shared, strict=True), strict=True)
    )
    np.testing.assert_allclose(there.features(after), net.features(before), rtol=1e-9, atol=1e-12)
    assert set(net.gps) == set(net.tasks)
    for gp, other in zip(net.gps.values(), there.gps.values(), strict=True):  # which predict in single precision
        here, moved_there = (
            gp.alpha @ term_covariance(_term(g), g.theta[:-1], g.x, t) for g, t in ((gp, before), (other, after))
        )
        np.testing.assert_allclose(moved_there, here, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(there.predictions(after), net.predictions(before), atol=0.05)
    assert net.success is not None
    assert there.success is not None
    typical = np.full(len(shared), 0.9)
    said = there.success.probability(after, typical)
    np.testing.assert_allclose(said, net.success.probability(before, typical), rtol=1e-6)


def test_priors_on_x_mean_the_same_distances(net: FeatureNet) -> None:
    new = Space({**OLD.distributions, **CHANGES["narrower"]})
    there = moved(net, OLD, new)
    configurations = [new.decode(u) for u in np.random.default_rng(2).random((12, new.d))]
    said = []
    for model, space in ((net, OLD), (there, new)):
        kernel = informed(alone(space), model.priors["alone"])
        x = space.transform(np.array([space.encode(params) for params in configurations]))
        blocks = {"1": np.ones((len(x), 1)), "x": x}
        few = {name: block[:6] for name, block in blocks.items()}
        said.append(posterior(build(kernel, kernel.priors[0], few, np.arange(6.0)), blocks).mean)
    np.testing.assert_allclose(said[1], said[0], rtol=1e-6)


def test_it_is_used_and_saved_as_any_other(net: FeatureNet, tmp_path) -> None:
    new = Space({**OLD.distributions, **CHANGES["narrower"]})
    with pytest.raises(InputError, match="another space"):
        Optimizer(new, net)
    there = moved(net, OLD, new)
    there.save(tmp_path / "net.safetensors")
    again = FeatureNet.load(tmp_path / "net.safetensors", new)
    first = [Optimizer(new, each, n_trials=5).ask().params for each in (there, again)]
    assert first[0] == first[1]
    assert set(first[0]) == set(new.names)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": CategoricalDistribution(["x", "y", "w"])}, "'kind' has other choices"),
        ({"lr": FloatDistribution(1e-4, 1e-1)}, "'lr' has a log scale in one space"),
        ({"new": FloatDistribution(0, 1)}, "the new space has the parameters"),
    ],
)
def test_what_it_cannot_serve(net: FeatureNet, change, words) -> None:
    with pytest.raises(InputError, match=words):
        moved(net, OLD, Space({**OLD.distributions, **change}))


def test_the_old_space_has_to_be_the_one(net: FeatureNet) -> None:
    narrow = Space({**OLD.distributions, **CHANGES["narrower"]})
    with pytest.raises(InputError, match="was not learned for the old space"):
        moved(net, narrow, OLD)
    one = Space({**OLD.distributions, "units": IntDistribution(16, 16)})
    with pytest.raises(InputError, match="'units' had one value only"):
        moved(replace(net, space_fingerprint=one.fingerprint), one, OLD)
