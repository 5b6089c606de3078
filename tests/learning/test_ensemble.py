"""Ensembles of pretrained nets: members side by side, one theta, and what averaging gives."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import r2_score
from two_tasks import ALONE, QUICK, SPACE, TWO, first, history, prepared, silent, task

from jumbo_bo.learning import assembly, training
from jumbo_bo.learning import pretrain as module
from jumbo_bo.learning.elsewhere import trained_by
from jumbo_bo.learning.features import latent, layers_of, side_by_side
from jumbo_bo.learning.pretrain import PRESETS, pretrain


def predict(layers, t):
    return latent(layers, t) @ layers[-1][0] + layers[-1][1]


@pytest.fixture
def members(monkeypatch):
    """The members of the nets that the test trains, as they are put side by side."""
    seen = []

    def spy(layers):
        seen.extend(layers)
        return side_by_side(layers)

    monkeypatch.setattr(assembly, "side_by_side", spy)
    return seen


@pytest.mark.parametrize("target", [None, task("new", first, 12, 5)])
def test_members_trained_in_other_processes_are_the_same(target):
    old, options = replace(TWO, target=target), replace(QUICK, members=2, max_steps=100)
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        trained_by(lambda work, arguments: list(pool.map(work, *zip(*arguments, strict=True)))),
    ):
        elsewhere = pretrain(old, options, seed=3)
    here = pretrain(old, options, seed=3)
    for ours, theirs in zip(here.layers, elsewhere.layers, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    assert here.info == elsewhere.info
    assert here.theta.keys() == elsewhere.theta.keys()


def test_an_ensemble_is_its_members_side_by_side(members):
    options = replace(QUICK, members=3, max_steps=150)
    net = pretrain(TWO, options, seed=3)
    trained = [module._train(prepared(TWO, 3, i), options, 3, i, silent) for i in range(3)]
    alone = [layers_of(m.phi.astype(float), assembly.sizes_of(m.data, options)) for m in trained]
    for ours, again in zip(net.layers, side_by_side(alone), strict=True):
        np.testing.assert_array_equal(ours[0], again[0])
        np.testing.assert_array_equal(ours[1], again[1])
    assert net.info["members"] == [m.info for m in trained]
    t = SPACE.transform(SPACE.sample(np.random.default_rng(9), 50))
    each = np.array([predict(layers, t) for layers in members])
    np.testing.assert_allclose(net.predictions(t), each.mean(axis=0), rtol=0, atol=1e-14)
    assert all(np.abs(each[i] - each[j]).max() > 0.05 for i, j in [(0, 1), (0, 2), (1, 2)])
    assert set(trained[0].data.valid) != set(trained[1].data.valid)
    assert net.blocks(t)["h"].shape == (50, 3 * options.n_z)
    assert net.blocks(t)["g"].shape == (50, 2)


def test_the_first_member_is_the_net_that_is_trained_alone():
    one = pretrain(TWO, ALONE, seed=3)
    assert len(one.info["members"]) == 1
    assert one.n_z == ALONE.n_z
    three = pretrain(TWO, replace(QUICK, members=3, max_steps=150), seed=3)
    # The same compiled code on the same rows: equal to the bit. The forward pass multiplies matrices of another shape,
    # which the linear algebra may add up in another order: equal up to rounding.
    np.testing.assert_array_equal(three.layers[0][0][:, : QUICK.n_u], one.layers[0][0])
    np.testing.assert_allclose(three.h_mean[: QUICK.n_z], one.h_mean, rtol=0, atol=1e-13)
    assert three.info["members"][0] == one.info["members"][0]


def test_averaging_takes_the_members_disagreement_off_their_error(members):
    noisy = task("noisy", lambda u: first(u) + np.random.default_rng(2).normal(scale=0.5, size=len(u)), 300, seed=1)
    net = pretrain(history(noisy), replace(PRESETS["default"], max_steps=2_000, gp_rows=0))
    u = SPACE.sample(np.random.default_rng(9), 400)
    t, z = SPACE.transform(u), net.warps[0](first(u))
    each = np.array([predict(layers, t)[:, 0] for layers in members])
    errors = ((each - z) ** 2).mean(axis=1)
    error = float(np.mean((net.predictions(t)[:, 0] - z) ** 2))
    assert error == pytest.approx(errors.mean() - each.var(axis=0).mean(), rel=1e-9)  # an identity
    assert len(errors) == 4
    assert error < errors.mean()


def test_validation_r2_is_the_average_over_members_each_on_its_own_held_out_rows(members):
    net = pretrain(TWO, replace(QUICK, members=2, max_steps=100))
    for k, name in enumerate(net.tasks):
        expected = []
        for i, layers in enumerate(members):
            data = prepared(TWO, member=i)
            x, z, w = (a[data.valid] for a in data.rows)
            seen = w[:, k] > 0
            expected.append(r2_score(z[seen, k], predict(layers, (x[seen] + 1.0) / 2)[:, k]))
        assert net.info["validation_r2"][name] == pytest.approx(np.mean(expected), rel=1e-6)


def test_eq1_of_several_members_gives_one_theta():
    net = pretrain(history(*TWO.tasks, target=task("target", first, 12, seed=5)), QUICK)
    assert set(net.theta) == {"warm", "cold"}
    assert all(theta.shape == (3,) and np.isfinite(theta).all() for theta in net.theta.values())


def test_the_common_theta_of_equal_members_means_the_same_kernel():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(2, 3))
    common = assembly._common_theta([assembly.Trained(prepared(TWO), np.zeros(1, "f"), theta, {})] * 4)
    h = rng.random((6, 3))
    (variance, lengthscale, noise), joint = np.exp(theta[0]), np.exp(common["warm"])
    kernel = variance * Matern(lengthscale, nu=2.5)(h)
    np.testing.assert_allclose(joint[0] * Matern(joint[1], nu=2.5)(np.hstack([h] * 4)), kernel, rtol=1e-12)
    assert joint[2] == pytest.approx(noise)
    np.testing.assert_allclose(common["cold"], theta[1], rtol=1e-12)


@pytest.mark.parametrize("count", [1, 4])
def test_max_steps_is_shared_by_the_members(count):
    options = replace(PRESETS["default"], members=count, max_steps=200)
    steps = [info["steps"] for info in pretrain(TWO, options).info["members"]]
    assert steps == [200 // count] * count
    assert training.steps_per_member(replace(options, max_steps=40_000), 10**6) == 40_000 // count
