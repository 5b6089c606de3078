"""The transfer report: related, unrelated and inverted old tasks are told apart, and said so in words."""

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report.tables import transfer_table
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import TaskTransfer, TransferReport, _density, _verdict, _weights, error, transfer

SPACE = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})


def good(u):
    return -((u[:, 0] - 0.3) ** 2) - 0.5 * (u[:, 1] - 0.6) ** 2


def unrelated(u):
    return np.sin(9 * u[:, 0] + 2) * np.cos(7 * u[:, 1])


def task(name, function, n=300):
    u = np.random.default_rng(len(name)).random((n, 2))
    return Task(name, u, function(u))


def study(tasks, n, new=good, **options):
    optimizer = Optimizer(SPACE, History(SPACE, tasks), "maximize", 30, **options)
    for u in np.random.default_rng(5).random((n, 2)):
        optimizer.tell(SPACE.decode(u), float(new(u[None])[0]))
    return optimizer


@pytest.fixture(scope="module")
def mixed():
    return study((task("same", good), task("else", unrelated)), 12)


def test_the_related_task_is_found(mixed):
    report = transfer(mixed)
    same, other = report.tasks
    assert (same.name, other.name) == ("same", "else")
    assert same.weight > 0.5 > abs(other.weight)
    assert same.gain > 0.3 > other.gain
    assert same.agreement > 0.9 > other.agreement
    assert report.gain > 0.3
    assert 0.5 < report.trust <= 1
    assert "help" in report.verdict
    assert "Most of the help comes from same" in report.verdict
    assert str(report).splitlines()[2].split()[0] == "same"


def test_weights_are_the_slopes_of_the_posterior_mean(mixed):
    """Moving one head by a unit everywhere it enters, and nothing else, moves the mean by its weight."""
    view, net = mixed.view(), mixed.net
    blocks = view.domain.featurise(view.u)
    gp = gps.fit(joint_kernel(view), blocks, view.z)
    here = {name: block[:1].copy() for name, block in blocks.items()}
    for k, weight in enumerate(_weights(gp, net)):
        moved = {name: block.copy() for name, block in here.items()}
        moved["m"] += 1 / len(net.tasks)
        moved["g"] += net.g_basis[k] / net.g_sd
        change = gps.posterior(gp, moved).mean - gps.posterior(gp, here).mean
        np.testing.assert_allclose(change, weight, atol=1e-9)


def test_an_error_smaller_by_half_is_what_a_gain_means():
    """Of a normal prediction that is right about its own error, halved with everything it depends on."""
    z = np.random.default_rng(0).standard_normal(1000)

    def density(error):
        return np.mean(-0.5 * z**2 - np.log(error) - 0.5 * np.log(2 * np.pi))

    assert error(density(0.3) - density(0.6)) == pytest.approx(-0.5)
    assert TaskTransfer("old", 1.0, density(0.6) - density(0.3), 0.0).error == pytest.approx(1.0)


def test_the_trust_is_that_of_the_model_that_makes_the_suggestions(mixed):
    assert transfer(mixed).trust == pytest.approx(mixed.ask().explanation.trust, abs=1e-12)
    gated = transfer(study((task("same", good),), 6, method="jumbo-printed"))
    assert math.isnan(gated.trust)
    assert "comes from the old runs" not in gated.verdict


def test_density_is_that_of_models_that_never_saw_the_trial(mixed):
    view = mixed.view()
    blocks = view.domain.featurise(view.u)
    gp = gps.fit(joint_kernel(view), blocks, view.z)
    densities = []
    for i in range(len(view.z)):
        rest = np.arange(len(view.z)) != i
        seen = gps.build(gp.kernel, gp.theta, {name: b[rest] for name, b in blocks.items()}, view.z[rest])
        mean, sd = gps.posterior(seen, {name: b[~rest] for name, b in blocks.items()})
        variance = sd[0] ** 2 + gp.noise
        densities.append(-0.5 * (view.z[i] - mean[0]) ** 2 / variance - 0.5 * math.log(2 * math.pi * variance))
    assert _density(gp) == pytest.approx(np.mean(densities), abs=1e-6)


def test_an_inverted_past_is_used_in_reverse():
    report = transfer(study((task("same", lambda u: -good(u)),), 12))
    assert report.tasks[0].weight < 0
    assert report.tasks[0].agreement < -0.9
    assert report.gain > 0.1
    assert "used in reverse" in report.verdict


def test_an_unrelated_past_is_called_that():
    report = transfer(study((task("else", unrelated), task("third", lambda u: unrelated(1 - u))), 20))
    assert report.gain < 0.05
    assert any(words in report.verdict for words in ("no difference", "being ignored", "mislead"))
    assert "agreement" in report.verdict


@pytest.mark.parametrize(
    ("gain", "agreement", "share", "expected"),
    [
        (0.5, 0.9, 0.8, "The old runs help: with them, the error of predictions is 39% smaller"),
        (0.0, 0.7, 0.8, "point the right way"),
        (0.0, 0.1, 0.8, "make no difference"),
        (-0.5, 0.1, 0.1, "are being ignored"),
        (-0.5, 0.1, 0.6, "mislead"),
        (0.0, math.nan, 0.6, "make no difference"),
    ],
)
def test_verdicts(gain, agreement, share, expected):
    verdict = _verdict([TaskTransfer("old", 0.5, gain, agreement)], gain, share, 10)
    assert expected in verdict
    assert f"{share:.0%} of what the model predicts" in verdict


def test_early_and_without_old_runs():
    early = transfer(study((task("same", good),), 1))
    assert "Too early" in early.verdict
    assert math.isnan(early.gain)
    first = transfer(study((task("same", good),), 0))
    assert (first.tasks[0].weight, first.trust) == (1.0, 1.0)
    assert "no old runs" in transfer(Optimizer(SPACE)).verdict
    assert "does not use old runs" in transfer(study((task("same", good),), 3, method="gp-ucb")).verdict


def test_constant_values_and_failures_do_not_break_it():
    constant = study((task("same", good),), 6, new=lambda u: np.zeros(len(u)))
    assert math.isnan(transfer(constant).tasks[0].agreement)
    failing = study((task("same", good),), 6)
    failing.fail(SPACE.decode([0.5, 0.5]))
    assert transfer(failing).n_trials == 6  # a failure is no value to predict


def test_of_many_tasks_the_first_ones_are_shown():
    tasks = tuple(TaskTransfer(f"old {k}", 0.0, math.nan, 0.0) for k in range(10_000))
    lines = str(TransferReport(tasks, 0.1, 0.5, 12, "The old runs help.")).splitlines()
    assert len(lines) == 2 + 40 + 1
    assert lines[2].startswith("old 0 ")
    assert lines[-1] == "... and 9,960 more old tasks"
    assert transfer_table(tasks).count("<tr>") == 1 + 40 + 1
    assert "... and 9,960 more old tasks" in transfer_table(tasks)
    assert "more old tasks" not in str(TransferReport(tasks[:40], 0.1, 0.5, 12, "")) + transfer_table(tasks[:40])
