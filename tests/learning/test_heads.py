"""Heads of many tasks: their closed form, the prior they share, and the sample that the members learn from."""

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from sklearn.metrics import r2_score

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import heads
from jumbo_bo.learning.features import FeatureNet, latent
from jumbo_bo.learning.heads import Moments, Prior
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report.latent import OLD_POINTS, latent_map
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
QUICK = Pretraining(members=2, max_steps=100)
LONGER = Pretraining(members=2, max_steps=2_000)
P = 4


def drawn(k, n, seed=0):
    """Tasks from a known prior: features and values of each, and the prior."""
    rng = np.random.default_rng(seed)
    root = 0.5 * rng.normal(size=(P, P))
    prior = Prior(rng.normal(size=P), root @ root.T, 0.04)
    w = prior.mu + rng.normal(size=(k, P)) @ root.T
    phi = np.concatenate([rng.normal(size=(k, n, P - 1)), np.ones((k, n, 1))], axis=2)
    z = np.einsum("knp,kp->kn", phi, w) + 0.2 * rng.normal(size=(k, n))
    return phi, z, prior


def moments(phi, z):
    return Moments(np.einsum("kni,knj->kij", phi, phi), np.einsum("kni,kn->ki", phi, z), np.einsum("kn,kn->k", z, z))


def posterior_means(prior, phi, z):
    """Of the weights, as a GP with the kernel phi C phi^T has them."""
    covariance = phi @ prior.c @ phi.transpose(0, 2, 1) + prior.s * np.eye(z.shape[1])
    gain = prior.c @ phi.transpose(0, 2, 1) @ np.linalg.inv(covariance)
    return prior.mu + np.einsum("kpn,kn->kp", gain, z - phi @ prior.mu)


def log_evidence(prior, phi, z):
    covariance = phi @ prior.c @ phi.transpose(0, 2, 1) + prior.s * np.eye(z.shape[1])
    off = z - phi @ prior.mu
    return -0.5 * sum(o @ np.linalg.solve(c, o) + np.linalg.slogdet(c)[1] for c, o in zip(covariance, off, strict=True))


def shifted(k, u):
    c = np.random.default_rng(k).uniform(0.2, 0.8, 2)
    return -np.sum((u - c) ** 2, axis=1)


def task(k, n, seed=0):
    u = SPACE.sample(np.random.default_rng([k, seed]), n)
    return Task(f"task {k:05d}", u, shifted(k, u))


def test_a_head_is_the_gp_posterior_of_its_weights():
    phi, z, prior = drawn(3, 6)
    np.testing.assert_allclose(heads.posterior(prior, moments(phi, z))[0], posterior_means(prior, phi, z), rtol=1e-8)


def test_the_prior_is_found_from_the_tasks():
    phi, z, prior = drawn(3_000, 20)
    found = heads.learn_prior(moments(phi, z))
    np.testing.assert_allclose(found.mu, prior.mu, atol=0.06)  # standard errors of 3,000 draws
    np.testing.assert_allclose(found.c, prior.c, atol=0.06)
    assert found.s == pytest.approx(prior.s, rel=0.03)


def test_each_iteration_makes_the_values_more_likely(monkeypatch):
    phi, z, _ = drawn(40, 5)
    evidence = []
    for n in range(6):
        monkeypatch.setattr(heads, "ITERATIONS", n)
        evidence.append(log_evidence(heads.learn_prior(moments(phi, z)), phi, z))
    assert np.all(np.diff(evidence) > 0)


def test_r2_is_that_of_rows_predicted_from_the_other_folds():
    phi, z, prior = drawn(4, 9)
    predicted = np.empty_like(z)
    folds = [np.arange(9) % 3 == i for i in range(3)]
    for fold in folds:
        w = posterior_means(prior, phi[:, ~fold], z[:, ~fold])
        predicted[:, fold] = np.einsum("knp,kp->kn", phi[:, fold], w)
    expected = [r2_score(y, g) for y, g in zip(z, predicted, strict=True)]
    found = heads.left_out_r2(prior, [moments(phi[:, fold], z[:, fold]) for fold in folds])
    assert found == pytest.approx(expected, rel=1e-8)


def test_r2_is_not_known_of_one_row_or_of_equal_values():
    phi, z, prior = drawn(2, 3)
    none = moments(phi[:, :0], z[:, :0])
    assert heads.left_out_r2(prior, [moments(phi[:, :1], z[:, :1]), none]) == [None, None]
    z[1] = 2.0
    first, second = heads.left_out_r2(prior, [moments(phi[:, i : i + 1], z[:, i : i + 1]) for i in range(3)])
    assert first is not None
    assert second is None


def test_a_matrix_is_used_as_long_as_it_fits(monkeypatch):
    assert not heads.too_many([task(k, 2) for k in range(500)])
    assert heads.too_many([task(k, 2) for k in range(501)])
    monkeypatch.setattr(heads, "MOST_CELLS", 4_000)
    apart, u = [task(k, 10) for k in range(101)], SPACE.sample(np.random.default_rng(0), 10)
    assert heads.too_many(apart)  # 1,010 configurations
    assert not heads.too_many([Task(t.name, u, t.y) for t in apart])  # the same ten in all tasks
    assert not heads.too_many([task(k, 1_000) for k in range(100)])


def test_a_sample_is_bounded_and_each_member_has_its_own():
    some = lambda n, seed: heads.sample([task(k, n) for k in range(600)], np.random.default_rng(seed))  # noqa: E731
    large, small = some(1_100, 0), some(1, 0)
    assert (len(large), {len(t.y) for t in large}) == (30, {1_000})
    assert (len(small), {len(t.y) for t in small}) == (500, {1})
    assert len(some(100, 0)) == 50  # until there are 5,000 rows
    assert {t.name for t in large} != {t.name for t in some(1_100, 1)}


@pytest.fixture(scope="module")
def many():
    """600 tasks: most of five rows, one of a single row, one with all the configurations of some others, two noisy."""
    tasks = [task(k, 5) for k in range(596)] + [task(596, 1)]
    u = np.vstack([t.u for t in tasks[:200]])
    tasks.append(Task("with all rows", u, shifted(597, u)))
    rng = np.random.default_rng(0)
    tasks += [Task(f"noise {i}", SPACE.sample(rng, 300), rng.normal(size=300)) for i in range(2)]
    history = History(SPACE, tuple(tasks), direction="maximize")
    return history, pretrain(history, LONGER)


def test_every_task_has_a_head_but_those_that_cannot_be_predicted(many):
    history, net = many
    assert net.unlearned == ("noise 0", "noise 1")
    assert net.tasks == tuple(t.name for t in history.tasks[:-2])
    assert net.info["rows"] == history.n_rows
    assert set(net.info["validation_r2"]) == {t.name for t in history.tasks}
    assert not net.gps


def test_tasks_of_a_few_rows_are_predicted_where_they_have_none(many):
    _, net = many
    u = SPACE.sample(np.random.default_rng(9), 300)
    r2 = []
    for k in range(0, 590, 10):
        at = net.tasks.index(f"task {k:05d}")
        r2.append(r2_score(net.warps[at](shifted(k, u)), net.predictions(u)[:, at]))
    own = [r2_score(shifted(k, u), np.full(300, np.mean(task(k, 5).y))) for k in range(0, 590, 10)]
    assert np.median(r2) > 0.2 > np.median(own)


def test_a_study_starts_from_many_tasks_and_a_file_keeps_them(many, tmp_path):
    _, net = many
    net.save(tmp_path / "net")
    u = SPACE.sample(np.random.default_rng(1), 20)
    same = FeatureNet.load(tmp_path / "net", SPACE)
    for name, block in net.blocks(u).items():
        np.testing.assert_array_equal(same.blocks(u)[name], block)
    first = [Optimizer(SPACE, past, direction="maximize").ask().params for past in (net, same)]
    assert first[0] == first[1]


def test_many_tasks_of_one_member_with_two_features(many):
    """Fewer directions than columns of g."""
    history, _ = many
    net = pretrain(history, Pretraining(members=1, n_z=2, max_steps=50, least_r2=None))
    blocks = net.blocks(SPACE.sample(np.random.default_rng(1), 7))
    shapes = {"h": (7, 2), "g": (7, 2), "m": (7, 1), "dev": (7, 3), "heads": (7, 64)}
    assert {name: b.shape for name, b in blocks.items()} == shapes
    t = SPACE.transform(SPACE.sample(np.random.default_rng(1), 7))
    some = np.linspace(0, len(net.tasks) - 1, 64).astype(int)
    np.testing.assert_allclose(net.blocks(t)["heads"], net.predictions(t)[:, some], atol=1e-4)  # single precision


def test_the_seed_decides_the_heads(many):
    history, _ = many
    first, again, other = (pretrain(history, QUICK, seed=seed).layers[-1][0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_three_thousand_tasks():
    history = History(SPACE, tuple(task(k, 5) for k in range(3_000)), direction="maximize")
    net = pretrain(history, QUICK)
    assert len(net.tasks) == 3_000
    t = SPACE.sample(np.random.default_rng(1), 50)
    mean = (latent(net.layers, t) @ net.layers[-1][0] + net.layers[-1][1]).mean(axis=1)
    np.testing.assert_allclose(net.blocks(t)["m"][:, 0], mean, atol=1e-5)  # blocks are in single precision


def test_the_map_of_a_report_shows_runs_of_many_tasks(many):
    history, net = many
    figure, share = latent_map(net, history, [])
    assert len(figure["data"][0]["x"]) == OLD_POINTS
    assert 0 < share <= 1
