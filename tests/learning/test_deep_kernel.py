"""The likelihood that net, mean and kernel are trained by, against scikit-learn and our exact GP; what it learns."""

import jax
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from jumbo_bo.learning.deep_gp import Shape, conditioned, deep_blocks, features, parts
from jumbo_bo.learning.learners import deep_kernel
from jumbo_bo.learning.learners.deep_kernel import Batch, Plan, TaskSample, initial, meta_train, nll, tune
from jumbo_bo.models import gp as gps

SHAPES = {
    "fsbo": Shape((3, 7, 5), tanh=False, linear=False, ard=False),
    "hyperbo": Shape((3, 6, 4), tanh=True, linear=True, ard=True),
    "no net": Shape((3,), tanh=True, linear=True, ard=True),
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


def some(shape, n=12, seed=0):
    rng = np.random.default_rng(seed)
    params = initial(shape, rng)
    params += 0.3 * rng.standard_normal(len(params))
    x = rng.uniform(-1, 1, (n, shape.sizes[0]))
    return params, x, rng.standard_normal(n)


VALUE = jax.jit(nll, static_argnums=1)
SLOPE = jax.jit(jax.value_and_grad(nll), static_argnums=1)


def exact(function, *arguments):
    """In double precision, as training runs."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, function(*arguments))


def test_the_loss_is_the_likelihood_of_the_exact_gp(shape):
    params, x, z = some(shape)
    gp = conditioned(params, shape, (x + 1) / 2, z)
    # Two ways to the same distances: equal up to the rounding of the products, some 1e-12.
    assert exact(VALUE, params, shape, x, z, np.ones(12)) == pytest.approx(-gp.log_likelihood, rel=1e-9)


def test_the_loss_is_the_likelihood_of_scikit_learn(shape):
    params, x, z = some(shape)
    theta = parts(params, shape).theta
    blocks = deep_blocks(params, shape, (x + 1) / 2)
    scale = np.exp(theta[1:-1]) if shape.ard else float(np.exp(theta[1]))
    kernel = ConstantKernel(np.exp(theta[0])) * Matern(scale, nu=2.5) + WhiteKernel(np.exp(theta[-1]))
    other = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(blocks["deep"], z - blocks["prior"][:, 0])
    wanted = -other.log_marginal_likelihood(other.kernel_.theta)
    assert exact(VALUE, params, shape, x, z, np.ones(12)) == pytest.approx(wanted, rel=1e-7)


def test_the_gradient_is_that_of_finite_differences(shape):
    params, x, z = some(shape)
    w = np.ones(12)
    _, slope = exact(SLOPE, params, shape, x, z, w)
    numeric = np.empty_like(params)
    for i in range(len(params)):
        step = np.zeros_like(params)
        step[i] = 1e-6
        above, below = (exact(VALUE, params + s, shape, x, z, w) for s in (step, -step))
        numeric[i] = (above - below) / 2e-6
    # Central differences: an error of 1e-12 from the step, and the rounding of nll, 1e-14, divided by it.
    assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def test_rows_that_fill_up_change_nothing(shape):
    params, x, z = some(shape)
    empty = (*some(shape, 5, 1)[1:], np.zeros(5))
    full = Batch(*(np.concatenate(pair) for pair in zip((x, z, np.ones(12)), empty, strict=True)))
    value, slope = exact(SLOPE, params, shape, x, z, np.ones(12))
    padded_value, padded_slope = exact(SLOPE, params, shape, *full)
    assert padded_value == pytest.approx(value, rel=1e-12)
    assert padded_slope == pytest.approx(slope, rel=1e-9, abs=1e-11)


def test_equal_rows_have_a_finite_gradient(shape):
    params, x, z = some(shape)
    _, slope = exact(SLOPE, params, shape, np.repeat(x[:1], 12, axis=0), z, np.ones(12))
    assert np.isfinite(slope).all()


def test_features_of_many_rows_and_in_single_precision(shape):
    params, *_ = some(shape)
    t = np.random.default_rng(3).random((10_000, 3))
    whole = features(params, shape, t)
    assert whole[9_000:] == pytest.approx(features(params, shape, t[9_000:]), abs=1e-12)
    single = features(params, shape, t.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(whole, abs=1e-4)


def family(tasks, n, lengths, mean=lambda x: 0.0 * x[:, 0], seed=0, noise=0.05):
    """Tasks drawn from one GP."""
    rng = np.random.default_rng(seed)
    kernel = gps.Kernel((gps.ard("x", len(lengths)),))
    theta = np.log([1.0, *lengths, noise**2])
    made = []
    for _ in range(tasks):
        x = rng.uniform(-1, 1, (n, len(lengths)))
        cov = gps.covariance(kernel, theta, {"x": x}, {"x": x}) + noise**2 * np.eye(n)
        z = mean(x) + np.linalg.cholesky(cov) @ rng.standard_normal(n)
        made.append(TaskSample(x.astype(np.float32), z))
    return made


def test_a_known_gp_is_recovered():
    """Forty tasks of fifty rows. Drawn with six seeds, all estimates stay within two thirds of these tolerances."""
    data = family(40, 50, (0.4, 1.5), lambda x: 0.5 + x[:, 0])
    shape = Shape((2,), tanh=True, linear=True, ard=True)
    params, steps = meta_train(data, shape, Plan(4, 50, 3_000, 1e-2), 0)
    layers, weight, level, theta = parts(params, shape)
    assert steps > 0
    assert layers == ()
    assert np.exp(theta[0]) == pytest.approx(1.0, rel=0.35)
    assert np.exp(theta[1:-1]) == pytest.approx([0.4, 1.5], rel=0.2)
    assert np.exp(theta[-1] / 2) == pytest.approx(0.05, rel=0.3)
    assert weight == pytest.approx([1.0, 0.0], abs=0.3)
    assert level == pytest.approx(0.5, abs=0.3)


@pytest.mark.parametrize("name", ["fsbo", "hyperbo"])
def test_what_old_tasks_taught_predicts_a_new_task_better_than_no_training(name):
    """The tasks depend on the first of two coordinates, in ripples that the untrained kernel takes for noise."""
    rng = np.random.default_rng(0)

    def task(n):
        x = rng.uniform(-1, 1, (n, 2))
        return TaskSample(x.astype(np.float32), rng.normal() * np.sin(6 * x[:, 0]) + rng.normal() * np.cos(6 * x[:, 0]))

    shape = SHAPES[name]._replace(sizes=(2, *{"fsbo": (32, 32, 32), "hyperbo": (8, 8)}[name]))
    params, _ = meta_train([task(40) for _ in range(30)], shape, Plan(4, 40, 3_000, 1e-2), 0)
    untrained = initial(shape, np.random.default_rng(0))
    errors = {"trained": [], "untrained": []}
    for _ in range(20):
        whole = task(208)
        few, others = (TaskSample(whole.x[s], whole.z[s]) for s in (slice(8), slice(8, None)))
        for key, start in (("trained", params), ("untrained", untrained)):
            gp = conditioned(start, shape, (few.x.astype(float) + 1) / 2, few.z)
            mean = gp.predict(deep_blocks(start, shape, (others.x.astype(float) + 1) / 2)).mean
            errors[key].append(np.mean((mean - others.z) ** 2))
    assert np.mean(errors["trained"]) < 0.5 * np.mean(errors["untrained"])


def test_tuning_raises_the_likelihood_and_starts_anew_each_time(shape):
    params, x, z = some(shape, 20)
    rows = TaskSample(x.astype(np.float32), z)
    found = tune(params, shape, rows, 50, 1e-2)
    before, after = (conditioned(p, shape, (rows.x.astype(float) + 1) / 2, z).log_likelihood for p in (params, found))
    assert after > before + 0.5
    assert np.array_equal(found, tune(params, shape, rows, 50, 1e-2))
    assert tune(params, shape, rows, 0, 1e-2) is params
    assert tune(params, shape, TaskSample(rows.x[:0], z[:0]), 50, 1e-2) is params


def test_tuning_too_fast_keeps_the_best_on_the_way(shape):
    params, x, z = some(shape, 20)
    rows = TaskSample(x.astype(np.float32), z)
    wild = tune(params, shape, rows, 30, 1.0)
    before, after = (conditioned(p, shape, (rows.x.astype(float) + 1) / 2, z).log_likelihood for p in (params, wild))
    assert after >= before - 1e-9


def test_same_seed_same_params_and_another_seed_others():
    data = family(3, 30, (0.5, 1.0))
    shape, plan = Shape((2, 4), tanh=True, linear=True, ard=True), Plan(2, 16, 200, 1e-2, 2.0, 0.5)
    first, again, other = (meta_train(data, shape, plan, seed) for seed in (0, 0, 1))
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("sizes", [(4,), (1, 1, 1), (9,)], ids=str)
def test_too_few_rows_teach_nothing(sizes):
    data = [TaskSample(np.zeros((n, 2), np.float32), np.arange(float(n))) for n in sizes]
    shape = Shape((2, 4), tanh=True, linear=True, ard=True)
    assert meta_train(data, shape, Plan(2, 16, 200, 1e-2), 0)[1] == 0


def test_tasks_of_all_sizes_and_constant_values():
    rng = np.random.default_rng(0)
    sizes = (1, 5, 90)
    data = [TaskSample(rng.uniform(-1, 1, (n, 2)).astype(np.float32), np.full(n, 0.3 * n)) for n in sizes]
    params, _ = meta_train(data, SHAPES["hyperbo"]._replace(sizes=(2, 4)), Plan(2, 16, 200, 1e-2), 0)
    assert np.isfinite(params).all()


def test_values_are_stretched_and_moved_within_bounds():
    data = [TaskSample(np.zeros((2, 1), np.float32), np.array([-1.0, 1.0]))]
    batch = next(deep_kernel._batches(data, Plan(1, 3, 1, 1.0, 2.0, 0.5), np.random.default_rng(0), 400))
    low, high = np.sort(batch.z[:, :2], axis=1).T
    factor, middle = (high - low) / 2, (high + low) / 2
    assert 0.5 <= factor.min() < 0.55
    assert 1.9 < factor.max() <= 2.0
    assert -0.5 <= middle.min() < -0.45
    assert 0.45 < middle.max() <= 0.5
    assert not batch.z[:, 2].any()
