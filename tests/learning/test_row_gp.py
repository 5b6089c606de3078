"""GPs on the rows of old tasks: their mean, how they are judged, and their share beside the net."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from jumbo_bo import History, Space
from jumbo_bo.data.history import Task
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.learning.row_gp import RowGP, blend, conditioned, learn_row_gps, left_out_r2, share
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.models.gp import posterior

SPACE = Space(
    {
        "a": FloatDistribution(0, 1),
        "b": FloatDistribution(1e-4, 1e-1, log=True),
        "c": CategoricalDistribution(["p", "q", "r"]),
    }
)
QUICK = Pretraining(max_steps=50, members=1)


def smooth(u):
    return np.sin(5 * u[:, 0]) + 0.5 * u[:, 1] + 0.3 * (u[:, 2] > 0.5)


def task(name, n, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    u = SPACE.sample(rng, n)
    return Task(name, u, smooth(u) + noise * rng.normal(size=n))


def random_task(name, n, seed=0):
    rng = np.random.default_rng(seed)
    return Task(name, SPACE.sample(rng, n), rng.normal(size=n))


def row_gp(gp, weight=1.0):
    return RowGP(SPACE.groups, weight, gp.blocks["x"], gp.alpha, gp.theta)


def points(n=200):
    return SPACE.transform(SPACE.sample(np.random.default_rng(9), n))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_mean_is_that_of_the_gp(noise):
    gp = conditioned(SPACE, task("old", 300, noise=noise), 1000, np.random.default_rng(0))
    exact = posterior(gp, {"x": points(5000)}).mean
    single = row_gp(gp).mean(points(5000))
    np.testing.assert_allclose(single, exact, rtol=0, atol=2e-3)
    assert row_gp(gp).mean(points(0)).shape == (0,)


def test_r2_leaves_each_row_out():
    gp = conditioned(SPACE, task("old", 25, noise=0.1), 1000, np.random.default_rng(0))
    variance, *lengths, noise = np.exp(gp.theta)
    kernel = ConstantKernel(variance) * Matern(np.array(lengths)[list(SPACE.groups)], nu=2.5) + WhiteKernel(noise)
    x, z = gp.blocks["x"], gp.y
    missed = []
    for i in range(25):
        others = np.arange(25) != i
        model = GaussianProcessRegressor(kernel, optimizer=None).fit(x[others], z[others])
        missed.append(z[i] - model.predict(x[i : i + 1])[0])
    assert left_out_r2(gp) == pytest.approx(1 - np.mean(np.square(missed)) / np.var(z), rel=1e-6)


@given(st.floats(-2, 1), st.none() | st.floats(-2, 1))
def test_the_share_grows_with_what_the_gp_explains(gp, net):
    weight = share(gp, net)
    assert 0 < weight < 1
    assert share(gp, gp) == 0.5
    if abs(gap := gp - (net or 0.0)) > 0.01:
        assert (weight > 0.5) == (gap > 0)
    assert share(min(gp + 0.1, 1.0), net) >= weight


def test_who_gets_a_gp():
    tasks = [task("good", 100), random_task("noise", 100), task("few", 9), task("long", 201)]
    gps, known = learn_row_gps(SPACE, tasks, [0.9, 0.9, None, 0.5], 200, 0)
    assert set(gps) == {"good"}
    assert gps["good"].weight > 0.9
    assert known[0] > 0.99
    assert known[1:] == [0.9, None, 0.5]
    many = [task(str(k), 120, seed=k) for k in range(90)]
    assert learn_row_gps(SPACE, many, [0.5] * 90, 1000, 0)[0] == {}


def test_odd_tasks():
    u = SPACE.sample(np.random.default_rng(0), 20)
    same_rows = Task("same rows", np.repeat(u[:2], 10, axis=0), np.repeat([1.0, 2.0], 10))
    constant = Task("constant", u, np.full(20, 3.0))
    gps, known = learn_row_gps(SPACE, [same_rows, constant], [None, None], 1000, 0)
    assert np.isfinite([value for value in known if value is not None]).all()
    assert all(np.isfinite(gp.mean(points())).all() for gp in gps.values())


def test_blend_averages_by_weight():
    gp = conditioned(SPACE, task("old", 60), 1000, np.random.default_rng(0))
    heads = np.random.default_rng(0).normal(size=(200, 2))
    before = heads.copy()
    mixed = blend(heads, ("other", "old"), {"old": row_gp(gp, 0.25)}, points())
    np.testing.assert_array_equal(heads, before)
    np.testing.assert_array_equal(mixed[:, 0], heads[:, 0])
    np.testing.assert_allclose(mixed[:, 1], 0.75 * heads[:, 1] + 0.25 * row_gp(gp).mean(points()))


@pytest.fixture(scope="module")
def net():
    return pretrain(History(SPACE, (task("one", 80), task("two", 80, seed=1))), QUICK)


def test_a_net_with_gps_predicts_better_and_is_standardised(net):
    u = SPACE.sample(np.random.default_rng(9), 400)
    t = SPACE.transform(u)
    alone = replace(net, gps={})
    z = net.warps[0](smooth(u))
    error, error_alone = (np.mean((n.predictions(t)[:, 0] - z) ** 2) for n in (net, alone))
    assert error < 0.2 * error_alone
    blocks = net.blocks(t)
    np.testing.assert_allclose(blocks["m"][:, 0], net.predictions(t).mean(axis=1), rtol=0, atol=1e-3)
    reference = net.blocks(SPACE.transform(np.vstack([task("one", 80).u, task("two", 80, seed=1).u])))["g"]
    np.testing.assert_allclose(reference.std(axis=0), 1.0, atol=0.15)
    np.testing.assert_array_equal(blocks["h"], alone.blocks(t)["h"])


def test_a_task_that_only_the_gp_predicts_has_a_head():
    """Fifty steps teach the net nothing of a fast oscillation."""
    u = SPACE.sample(np.random.default_rng(0), 150)
    fast = Task("fast", u, np.sin(40 * u[:, 0]))
    options = replace(QUICK, max_steps=50)
    assert pretrain(History(SPACE, (fast,)), replace(options, gp_rows=0)).empty
    net = pretrain(History(SPACE, (fast,)), options)
    assert not net.empty
    assert net.gps["fast"].weight > 0.9


def test_a_shuffled_task_is_still_unlearned():
    assert pretrain(History(SPACE, (random_task("noise", 150),)), QUICK).empty


def test_a_net_with_gps_is_saved_and_read(net, tmp_path: Path):
    net.save(tmp_path / "net.safetensors")
    again = FeatureNet.load(tmp_path / "net.safetensors", SPACE)
    assert {name: gp.weight for name, gp in again.gps.items()} == {name: gp.weight for name, gp in net.gps.items()}
    for name, block in net.blocks(points()).items():
        np.testing.assert_array_equal(again.blocks(points())[name], block)


def test_a_damaged_gp_is_refused(net):
    gp = net.gps["one"]
    for wrong, words in (
        ({"one": replace(gp, alpha=gp.alpha[1:])}, "x of the GP of task 'one' has shape"),
        ({"one": replace(gp, theta=gp.theta[:2])}, "theta of the GP of task 'one' has shape"),
        ({"one": replace(gp, alpha=gp.alpha * np.nan)}, "not finite"),
        ({"one": replace(gp, weight=1.5)}, "weight 1.5"),
        ({"three": gp}, "a GP of task 'three'"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(net, gps=wrong)


def test_options():
    with pytest.raises(ValueError, match="gp_rows is -1"):
        Pretraining(gp_rows=-1)
    assert pretrain(History(SPACE, (task("one", 60),)), replace(QUICK, gp_rows=0)).gps == {}
