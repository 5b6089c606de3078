"""Ray Tune runs trials for real, from_ray reads what it leaves."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.trackers import from_ray
from jumbo_bo.space.space import Space

ray = pytest.importorskip("ray", reason="needs the PyPI package ray[tune] (make test-integration installs it)")
tune = pytest.importorskip("ray.tune", reason="needs the PyPI package ray[tune] (make test-integration installs it)")
pytestmark = [
    pytest.mark.integration,
    # Ray's own affairs: deprecated calls inside it, and sockets and processes it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "depth": IntDistribution(1, 4),
        "opt/name": CategoricalDistribution(["adam", "sgd"]),
    }
)


@pytest.fixture(scope="module")
def results(only_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Two experiments; their folder, and Tune's own view of each."""
    folder, patch = tmp_path_factory.mktemp("results"), pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    patch.setenv("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init("local", num_cpus=2, object_store_memory=80_000_000, **options)
    try:
        yield folder, {name: tuned(folder, name, shift) for name, shift in (("mnist", 0.0), ("svhn", 0.5))}
    finally:
        ray.shutdown()
        patch.undo()
        gc.collect()  # the files that Ray leaves open are closed while their warnings are ignored


def tuned(folder: Path, name: str, shift: float) -> Any:
    space = {
        "lr": tune.loguniform(1e-5, 0.1),
        "depth": tune.grid_search([1, 2, 3, 4]),
        "opt": {"name": tune.choice(["adam", "sgd"])},
        "note": None,
    }
    # Trial 3 fails for good, trial 4 the first time only.
    options = tune.RunConfig(
        name=name, storage_path=str(folder), verbose=0, failure_config=tune.FailureConfig(max_failures=1)
    )
    work = tune.with_resources(trainable(shift, str(folder / f"{name}-failed-once")), {"cpu": 1})
    return tune.Tuner(work, param_space=space, run_config=options, tune_config=tune.TuneConfig()).fit()


def trainable(shift: float, flag: str) -> Callable[[dict[str, Any]], None]:
    """Loss goes down and up again, so that the last report is not the best."""

    def train(config: dict[str, Any]) -> None:
        from pathlib import Path

        from ray import tune

        for step in range(3):
            if step == 1 and config["depth"] == 3:
                raise RuntimeError("never works")
            if step == 1 and config["depth"] == 4 and not Path(flag).exists():
                Path(flag).touch()
                raise RuntimeError("works the second time")
            loss = shift + config["lr"] + config["depth"] + (step - 1) ** 2 / 2
            tune.report({"loss": loss, "eval": {"acc": -loss}})

    return train


def by_depth(history: Any, task: str) -> dict[int, tuple[dict[str, Any], float]]:
    found = next(t for t in history.tasks if t.name == task)
    runs = [(SPACE.decode(u), history.sign(task) * float(y)) for u, y in zip(found.u, found.y, strict=True)]
    return {params["depth"]: (params, value) for params, value in runs}


def test_values_equal_what_tune_says(results: tuple[Path, dict[str, Any]]) -> None:
    folder, seen_by_tune = results
    history = from_ray(folder, SPACE, objective="loss")
    assert [t.name for t in history.tasks] == ["mnist", "svhn"]
    for name, grid in seen_by_tune.items():
        mine = by_depth(history, name)
        theirs = {r.config["depth"]: r for r in grid if r.error is None}
        assert set(mine) == set(theirs) == {1, 2, 4}  # the retried trial counts although it left an error file
        for depth, result in theirs.items():
            params, value = mine[depth]
            assert value == pytest.approx(result.metrics["loss"], rel=1e-12)
            assert params["lr"] == pytest.approx(result.config["lr"], rel=1e-11)
            assert params["opt/name"] == result.config["opt"]["name"]
    reasons = [(task, d.reason, d.count) for r in history.reports for task, ds in r.dropped.items() for d in ds]
    assert sorted(reasons) == [("mnist", "trial failed", 1), ("svhn", "trial failed", 1)]


def test_best_report_and_one_experiment(results: tuple[Path, dict[str, Any]]) -> None:
    folder, seen_by_tune = results
    last = by_depth(from_ray(folder / "svhn", SPACE, objective="loss"), "svhn")
    best = by_depth(from_ray(folder / "svhn", SPACE, objective="loss", which="best"), "svhn")
    for depth, (_, value) in best.items():
        assert value == pytest.approx(last[depth][1] - 0.5)
    frame = seen_by_tune["svhn"].get_dataframe(filter_metric="loss", filter_mode="min").set_index("config/depth")
    assert {d: v for d, (_, v) in best.items()} == pytest.approx({d: frame.loc[d, "loss"] for d in best})
    nested = from_ray(str(folder / "s*n"), SPACE, objective="eval/acc", direction="maximize")
    assert {d: v for d, (_, v) in by_depth(nested, "svhn").items()} == pytest.approx(
        {d: -v for d, (_, v) in last.items()}
    )
