"""The suite of trained models: real trainings, real failures, old runs that are trained once."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs jumbo-bo[bench]")

from jumbo_bo.bench.run import run_one
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.bench.trained import old_runs, problem, train
from jumbo_bo.bench.trained.train import DATASETS, MODELS, error

PAIRS = [(model, dataset) for model in MODELS for dataset in DATASETS]
MLP = {
    "layers": 1,
    "width": 32,
    "activation": "relu",
    "solver": "adam",
    "learning_rate": 0.01,
    "alpha": 1e-4,
    "batch_size": 32,
    "epochs": 30,
}
SVM = {"kernel": "rbf", "C": 10.0, "gamma": 0.01, "degree": 2, "coef0": 0.0, "tol": 1e-3, "scaling": "standard"}

SLOW = {**SVM, "C": 1e4, "tol": 1e-4}  # on diabetes the solver is not done when it has to stop


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pools whose values are made up: log10 of a learning rate or of C, one in ten failed."""
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path))
    for model, dataset in PAIRS:
        space = MODELS[model].space
        pool = [space.decode(u) for u in space.sample(np.random.default_rng(0), old_runs.POOL)]
        name = "C" if model == "svm" else "learning_rate"
        values = [math.nan if i % 10 == 0 else math.log10(params[name]) for i, params in enumerate(pool)]
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(old_runs, "errors_of", lambda *_, values=values: iter(values))
            old_runs.trained(model, dataset)
    return tmp_path / "sklearn"


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_training_learns(model: str, dataset: str) -> None:
    """The best configuration known is better than to say the same of every row."""
    known = problem.reference()["problems"][f"{model}-{dataset}"]
    ignorant = math.log(DATASETS[dataset]) if DATASETS[dataset] > 1 else 1.0
    found = error(model, dataset, known["params"], 12345)
    assert 0 < found < 0.8 * ignorant
    assert found == error(model, dataset, known["params"], 12345), "one seed, one result"
    assert found != error(model, dataset, known["params"], 12346), "another split, another error"


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_the_reference_is_that_of_these_trainings(model: str, dataset: str) -> None:
    name = f"{model}-{dataset}"
    known = problem.reference()["problems"][name]
    assert known["gap"] > 0
    assert known["failed"] < 0.5
    # Sums in another order train another net; versions of scikit-learn change details.
    few, many = (problem.mean_error(name, known["params"], range(n)) for n in (problem.FEW, problem.MANY))
    assert few == pytest.approx(known["few"], abs=2 * known["scatter"])
    assert many == pytest.approx(known["many"], abs=2 * known["scatter"])


def test_real_failures() -> None:
    assert math.isnan(error("mlp", "diabetes", {**MLP, "solver": "sgd", "learning_rate": 1.0, "layers": 3}, 0)), (
        "diverges"
    )
    assert math.isnan(error("mlp", "wine", {**MLP, "batch_size": 8, "epochs": 100}, 0)), "too many steps"
    assert math.isnan(error("svm", "diabetes", SLOW, 0)), "does not converge within the limit"
    assert math.isfinite(error("mlp", "wine", MLP, 0))
    assert math.isfinite(error("svm", "diabetes", SVM, 0))


def test_a_mistake_is_no_failed_training() -> None:
    with pytest.raises(ValueError, match="activation"):
        error("mlp", "wine", {**MLP, "activation": "none"}, 0)


def test_halves() -> None:
    both = (*problem.DEVELOPMENT, *problem.REPORT)
    assert sorted(both) == sorted(f"{model}-{dataset}" for model, dataset in PAIRS)
    assert SUITES["sklearn"].problems == problem.REPORT
    assert problem.REPORT[:2] == ("svm-digits", "svm-breast-cancer")


def test_old_runs_come_from_the_pool(pools: Path) -> None:
    suite = SUITES["sklearn"]
    made = suite("svm-digits", None, 3)
    assert [task.name for task in made.history.tasks] == ["breast-cancer", "diabetes", "wine"]
    assert all(45 <= len(task.y) < 60 for task in made.history.tasks), "failed ones are left out"
    first = made.history.tasks[0]
    assert -first.y == pytest.approx([math.log10(made.space.decode(u)["C"]) for u in first.u])
    histories = [suite("svm-digits@rows=20,tasks=1", None, seed).history for seed in (3, 3, 4)]
    assert histories[0].fingerprint == histories[1].fingerprint != histories[2].fingerprint
    assert [len(history.tasks) for history in histories] == [1, 1, 1]
    with pytest.raises(ValueError, match="expected 1 to 3"):
        suite("svm-digits@tasks=4", None, 0)
    with pytest.raises(ValueError, match="choose one of"):
        suite("svm-iris", None, 0)


def test_regret_is_against_the_best_known(pools: Path) -> None:
    made = SUITES["sklearn"]("svm-wine", None, 3)
    known = problem.reference()["problems"]["svm-wine"]
    assert made.regret(known["params"]) < 0.1  # 0 with the same libraries
    far = {**known["params"], "C": 1e-3, "kernel": "sigmoid"}
    few = problem.mean_error("svm-wine", far, range(problem.FEW))
    assert made.regret(far) == pytest.approx((few - known["few"]) / known["gap"])
    assert made.regret(far) > problem.FAR
    near = {**known["params"], "C": known["params"]["C"] / 3}
    many = problem.mean_error("svm-wine", near, range(problem.MANY))
    assert made.regret(near) == pytest.approx(max(many - known["many"], 0.0) / known["gap"])
    assert made.regret(near) < problem.FAR
    assert SUITES["sklearn"]("svm-diabetes", None, 3).regret(SLOW) == math.inf


def test_noise_comes_from_the_run(pools: Path) -> None:
    made = SUITES["sklearn"]("svm-wine", None, 3)
    values = [made.objective(SVM, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


def test_a_run(pools: Path) -> None:
    rows, _ = run_one(SUITES["sklearn"]("svm-wine", None, 3), "jumbo-joint", 3, 3)
    assert math.isfinite(rows[-1]["regret"])


def test_pools_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = old_runs.trained("svm", "wine", tmp_path, count=6)
    together = old_runs.trained("svm", "wine", tmp_path / "two", jobs=2, count=6)
    assert alone["error"].to_numpy() == pytest.approx(together["error"].to_numpy(), nan_ok=True)
    monkeypatch.setattr(old_runs, "error", lambda *_: pytest.fail("trained again"))
    assert old_runs.trained("svm", "wine", tmp_path, count=6).equals(alone)
    params = alone.drop("error").to_dicts()[2]
    assert alone["error"][2] == pytest.approx(train.error("svm", "wine", params, old_runs.FIRST_SEED + 2))


def test_only_what_is_needed_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(old_runs, "trained", lambda model, dataset, jobs: asked.append((model, dataset)))
    SUITES["sklearn"].prepare(["svm-wine", "svm-wine@rows=5"], [0, 1], 2)
    assert asked == [("svm", "breast-cancer"), ("svm", "diabetes"), ("svm", "digits")]
