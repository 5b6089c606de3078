"""Eq. 1: its value and gradient against other computations, what the nets learn, and awkward histories."""

import math
from dataclasses import replace

import jax
import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.metrics import r2_score
from two_tasks import ALONE, QUICK, SPACE, TWO, first, history, prepared, second, silent, task

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import pretrain as module
from jumbo_bo.learning import training
from jumbo_bo.learning.features import FeatureNet, layers_of
from jumbo_bo.learning.past_file import tensors
from jumbo_bo.learning.pretrain import PRESETS, Pretraining, pretrain
from jumbo_bo.space.space import Space


def same(a, b):
    return all(np.array_equal(tensors(a)[name], tensors(b)[name]) for name in tensors(a))


def test_learns_two_tasks_with_different_inputs(tmp_path):
    net = pretrain(TWO)
    u = SPACE.sample(np.random.default_rng(9), 300)
    g = net.predictions(SPACE.transform(u))
    for k, function in enumerate((first, second)):
        z = net.warps[k](function(u))
        assert 1 - np.mean((g[:, k] - z) ** 2) / np.var(z) > 0.9
    assert net.tasks == ("first", "second")
    assert all(r2 > 0.9 for r2 in net.info["validation_r2"].values())
    assert net.theta == {}
    path = tmp_path / "net.safetensors"
    net.save(path)
    assert same(FeatureNet.load(path, SPACE), net)


def test_the_seed_decides_the_weights():
    nets = [pretrain(TWO, QUICK, seed=seed) for seed in (3, 3, 4)]
    assert same(nets[0], nets[1])
    assert not same(nets[0], nets[2])


def test_dropout_is_drawn_from_the_seed():
    options = replace(QUICK, dropout=0.5)
    nets = [pretrain(TWO, options, seed=seed) for seed in (3, 3)]
    assert same(*nets)
    assert not same(nets[0], pretrain(TWO, QUICK, seed=3))


def test_the_stored_validation_loss_is_the_mean_of_the_heads_own_errors():
    net = pretrain(TWO, replace(ALONE, least_r2=None))
    data = prepared(TWO)
    x, z, w = (a[data.valid] for a in data.rows)
    square = (net.predictions((x + 1.0) / 2) - z) ** 2
    expected = np.mean([np.average(square[:, k], weights=w[:, k]) for k in range(2)])
    assert [info["validation_loss"] for info in net.info["members"]] == [pytest.approx(expected, rel=1e-4)]
    assert len(data.valid) == len(data.rows.x) // 5
    assert not set(data.valid) & set(data.train)


def test_rows_of_weight_zero_give_a_head_no_gradient():
    spec = module._Spec((4, 5, 3, 2), 0.0, False)
    rng = np.random.default_rng(0)
    phi = module._initial(rng, spec.sizes)
    x, z = rng.random((6, 4)).astype("f"), rng.random((6, 2)).astype("f")
    w = np.ones((6, 2), "f")
    w[:, 1] = 0
    grad = jax.jit(jax.grad(module._mse), static_argnums=2)
    gradient = np.asarray(grad(phi, training.Rows(x, z, w), spec))
    weight, bias = layers_of(gradient, spec.sizes)[-1]
    assert np.all(weight[:, 1] == 0)
    assert bias[1] == 0
    assert np.all(weight[:, 0] != 0)
    other = grad(phi, training.Rows(x, z * w + 9 * (1 - w), w), spec)
    np.testing.assert_array_equal(gradient, other)  # nor does their value matter


@pytest.mark.parametrize("theta", [(0.0, 0.0, -3.0), (1.0, -1.0, -6.0)])
def test_gp_likelihood_and_gradient_equal_scikit_learn(theta):
    rng = np.random.default_rng(0)
    x, z = rng.random((15, 3)), rng.normal(size=15)
    x[1] = x[0]
    variance, lengthscale, noise = np.exp(theta)
    kernel = ConstantKernel(variance) * Matern(lengthscale, nu=2.5) + WhiteKernel(noise)
    oracle = GaussianProcessRegressor(kernel, optimizer=None).fit(x, z)
    value, gradient = oracle.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    with jax.enable_x64(True):
        square = ((x[:, None] - x[None, :]) ** 2).sum(axis=-1)
        ours, ours_gradient = jax.jit(jax.value_and_grad(module._nll, 2))(square, z, np.array(theta))
    assert ours == pytest.approx(-value, rel=1e-6)
    np.testing.assert_allclose(ours_gradient, -gradient, rtol=1e-5, atol=1e-7)


def test_gp_gradient_reaches_the_features_only_as_a_deep_kernel():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        target = training.Target(rng.random((8, 4)), rng.normal(size=8), rng.random((9, 4)).astype("f"))
        spec = module._Spec((4, 5, 3, 2), 0.0, True)
        phi = module._initial(rng, spec.sizes).astype(np.float64)
        theta = np.array([module.THETA_START] * 2)
        value_and_grad = jax.jit(jax.value_and_grad(module._gp_terms), static_argnums=3)
        _, gradient = value_and_grad(phi, theta, target, spec)
        direction = rng.normal(size=phi.shape)
        moved = [float(value_and_grad(phi + s * 1e-5 * direction, theta, target, spec)[0]) for s in (1, -1)]
        assert np.asarray(gradient) @ direction == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-4)
        _, off = value_and_grad(phi, theta, target, spec._replace(deep_kernel=False))
    assert not np.any(off)


def test_eq1_gives_hyperparameters_for_the_blocks_of_the_result():
    target = task("target", lambda u: first(u) + 0.3 * second(u), 12, seed=5)
    joint = history(*TWO.tasks, target=target)
    alone = replace(PRESETS["default"], members=1, gp_rows=0)
    net = pretrain(joint, alone)
    assert set(net.theta) == {"warm", "cold"}
    t = SPACE.transform(target.u)
    total = 0.0
    for name, inputs in {"warm": net.blocks(t)["h"], "cold": t}.items():
        variance, lengthscale, noise = np.exp(net.theta[name])
        kernel = ConstantKernel(variance) * Matern(lengthscale, nu=2.5) + WhiteKernel(noise)
        total -= GaussianProcessRegressor(kernel, optimizer=None).fit(inputs, target.z).log_marginal_likelihood_value_
    data = prepared(joint)
    x, z, w = (a[data.valid] for a in data.rows)
    square = (net.predictions((x + 1.0) / 2) - z) ** 2
    mse = np.mean([np.average(square[:, k], weights=w[:, k]) for k in range(2)])
    (info,) = net.info["members"]
    assert info["validation_loss"] == pytest.approx(mse + total / 12, rel=1e-4, abs=1e-4)
    assert same(net, pretrain(joint, alone))
    assert not jax.config.jax_enable_x64

    # Constant values and repeated rows: still finite. (Same sizes as above, so nothing is compiled again.)
    odd = Task("odd", np.repeat(target.u[:3], 4, axis=0), np.full(12, 2.0))
    net = pretrain(history(*TWO.tasks, target=odd), replace(alone, max_steps=200))
    assert np.isfinite([*net.theta["warm"], *net.theta["cold"]]).all()


def test_without_old_tasks_the_target_is_the_head():
    net = pretrain(history(target=task("target", first, 40)), QUICK)
    assert net.tasks == ("target",)
    assert set(net.theta) == {"warm", "cold"}


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="nothing to learn from"):
        pretrain(history())
    with pytest.raises(ValueError, match="nothing to learn from"):
        pretrain(history(task("empty", first, 0)))


@pytest.mark.parametrize(
    "awkward",
    [
        task("one row", first, 1),
        Task("same input", np.full((12, 3), 0.5), np.arange(12.0)),
        Task("same value", SPACE.sample(np.random.default_rng(0), 12), np.ones(12)),
    ],
    ids=lambda t: t.name,
)
def test_awkward_histories_give_finite_blocks(awkward):
    net = pretrain(history(awkward), QUICK)
    blocks = net.blocks(SPACE.transform(SPACE.sample(np.random.default_rng(1), 20)))
    assert all(np.isfinite(block).all() for block in blocks.values())
    assert np.abs(blocks["h"]).max() < 1e4


def test_a_loss_that_is_not_finite_restarts_at_a_lower_rate(monkeypatch):
    rates = []
    real = module._attempt

    def fails_at_first(data, options, rate, seed, report):
        rates.append(rate)
        return None if len(rates) < 3 else real(data, options, rate, seed, report)

    monkeypatch.setattr(module, "_attempt", fails_at_first)
    infos = pretrain(TWO, replace(QUICK, members=2)).info["members"]
    assert [info["learning_rate"] for info in infos] == pytest.approx([1e-4, 1e-2])  # the second member had no trouble
    assert rates == pytest.approx([1e-2, 1e-3, 1e-4, 1e-2])
    monkeypatch.setattr(module, "_attempt", lambda *_: None)
    with pytest.raises(ValueError, match=r"diverged.*lower learning_rate"):
        pretrain(TWO, QUICK)


def test_a_diverging_run_is_noticed():
    assert module._attempt(prepared(TWO), QUICK, math.inf, (0, 0), silent) is None


def test_progress_is_silent_without_a_terminal(capsys):
    pretrain(TWO, ALONE, progress=True)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize("as_r2", [True, False])
def test_progress_shows_rows_and_how_well_they_are_predicted(capsys, monkeypatch, as_r2):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    with training.progress_bar(True, n_steps=100, rows=1234, as_r2=as_r2) as report:
        before = capsys.readouterr().err
        report(50, 20, 0.25)
    after = capsys.readouterr().err
    assert "1,234 rows" in before
    assert ("R2 -" in before, "R2 0.75" in after) == (as_r2, as_r2)
    assert "nan" not in before + after


def test_a_task_that_cannot_be_predicted_has_no_say():
    rng = np.random.default_rng(0)
    u = rng.uniform(size=(200, 2))
    space = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
    bowl, noise = Task("bowl", u, -np.sum((u - 0.4) ** 2, axis=1)), Task("noise", u, rng.normal(size=200))
    few = Task("few", u[:8], rng.normal(size=8))
    net = pretrain(History(space, (noise, bowl, few)), Pretraining(max_steps=4000))
    assert (net.tasks, net.unlearned, net.empty) == (("bowl", "few"), ("noise",), False)
    assert net.warps == (bowl.warp, few.warp)
    assert net.info["validation_r2"]["noise"] < 0.1 < net.info["validation_r2"]["bowl"]
    assert r2_score(bowl.z, net.predictions(space.transform(u))[:, 0]) > 0.5
    nothing = pretrain(History(space, (noise,)), QUICK)
    assert nothing.empty
    assert pretrain(History(space, (noise, bowl)), replace(QUICK, least_r2=None)).tasks == ("noise", "bowl")


def test_presets_are_the_papers_table():
    hpo, circuit = PRESETS["hpo"], PRESETS["circuit"]
    assert (hpo.n_u, hpo.n_z, hpo.n_l, hpo.learning_rate, hpo.batch_size, hpo.dropout) == (32, 4, 3, 5e-5, 128, 0)
    assert (circuit.n_u, circuit.n_z, circuit.n_l, circuit.learning_rate) == (200, 32, 3, 3e-4)
    assert (circuit.batch_size, circuit.dropout) == (64, 0.5)
    for preset in (hpo, circuit):  # nothing of ours
        alone = (preset.members, preset.least_r2, preset.gp_rows, preset.weight_decay, preset.schedule)
        assert alone == (1, None, 0, 0.0, "constant")
    with pytest.raises(ValueError, match=r"expected Pretraining.* or one of"):
        pretrain(TWO, "hpoo")
