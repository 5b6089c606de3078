"""Peers from outside the package, with random search in their place: the others need environments of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.run import Run, execute, read_runs, run_suite
from jumbo_bo.data.history import History, Task
from jumbo_bo.space.space import Params, Space

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1e-1, log=True),
        "width": IntDistribution(16, 1024, log=True),
        "layers": IntDistribution(1, 5),
        "batch": CategoricalDistribution([64, 8, 512]),
        "schedule": CategoricalDistribution(["cosine", "constant", None, True]),
    }
)


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    sys.path.insert(0, str(PEERS))
    yield
    sys.path.remove(str(PEERS))


def problem(candidates: list[Params] | None = None, log: bool = False, tasks: int = 3, rows: int = 40) -> Problem:
    rng = np.random.default_rng(0)

    def loss(u: Any) -> Any:
        return np.exp(9 * u[..., 0]) if log else u[..., 0] - 0.5

    old = []
    for k in range(tasks):
        u = SPACE.sample(rng, rows)
        old.append(Task(f"old{k}", u, -loss(u)))
    return Problem(
        "p", SPACE, History(SPACE, tuple(old)), lambda params, _: float(loss(SPACE.encode(params))),
        lambda params: float(SPACE.encode(params)[0]), candidates=candidates,
    )  # fmt: skip


def test_the_run_of_a_peer_stands_beside_ours(tmp_path: Path) -> None:
    from peer import Caps
    from run import starter

    theirs, ours = (Run("synthetic", "branin", method, 0, 4) for method in ("peer-random", "random"))
    assert run_suite([theirs], tmp_path, command="peers", jobs=1, start=starter(Path(sys.executable), Caps())) == {}
    execute(ours, tmp_path, None, "ours")
    rows, heads = read_runs(tmp_path, "synthetic")
    assert sorted(rows["method"].unique()) == ["peer-random", "random"]
    assert rows.null_count().sum_horizontal().item() == 0  # both have every column
    by_method = {head["method"]: head for head in heads}
    assert set(by_method["peer-random"]) - set(by_method["random"]) == {"caps"}
    assert set(by_method["random"]) <= set(by_method["peer-random"])
    assert by_method["peer-random"]["history"] == by_method["random"]["history"]
    regret = rows.filter(pl.col("method") == "peer-random")["regret"].to_list()
    assert regret == sorted(regret, reverse=True)

    written = theirs.path(tmp_path).read_text()
    run_suite([theirs], tmp_path, command="again", jobs=1, start=starter(Path(sys.executable), Caps()))
    assert theirs.path(tmp_path).read_text() == written


def test_a_failed_run_leaves_its_traceback_and_no_file(tmp_path: Path) -> None:
    from peer import Caps
    from run import starter

    run = Run("synthetic", "no such problem", "peer-random", 0, 2)
    assert list(run_suite([run], tmp_path, jobs=1, start=starter(Path(sys.executable), Caps()))) == [run]
    assert "no such problem" in run.failure_path(tmp_path).read_text()
    assert not run.path(tmp_path).exists()


def test_botorch_finds_the_minimum_of_branin(tmp_path: Path) -> None:
    from peer import Caps
    from run import starter
    from setup import interpreter

    python = interpreter("botorch-logei")
    if not python.exists():
        pytest.skip("needs an environment: python benchmarks/peers/setup.py botorch-logei")
    run = Run("cold", "branin", "botorch-logei", 0, 15)
    assert run_suite([run], tmp_path, jobs=1, start=starter(python, Caps())) == {}
    rows, _ = read_runs(tmp_path, "cold")
    assert rows["regret"].min() < 0.1
    assert rows["value"].n_unique() == 15  # nothing is tried twice


def test_old_rows_stay_within_the_caps_and_keep_the_best() -> None:
    from peer import Caps, setting

    given = problem(tasks=5)
    small = setting(given, seed=1, trials=9, caps=Caps(tasks=3, rows=10))
    assert len(small.old) == 3
    by_name = {task.name: task for task in given.history.tasks}
    for old in small.old:
        task = by_name[old.name]
        assert len(old.params) == len(old.y) == 10
        best = np.sort(task.y)[::-1][:3]
        assert set(best) <= set(old.y)
        seen = {json.dumps(SPACE.decode(u)): y for u, y in zip(task.u, task.y, strict=True)}
        assert [seen[json.dumps(params)] for params in old.params] == old.y.tolist()
    assert [old.name for old in setting(given, 1, 9, Caps(3, 10)).old] == [old.name for old in small.old]
    everything = setting(given, seed=1, trials=9, caps=Caps())
    assert [len(old.y) for old in everything.old] == [40] * 5


@pytest.mark.parametrize("log", [False, True])
def test_a_peer_sees_one_scale_and_larger_is_better(log: bool) -> None:
    from peer import Caps, Setting, run_peer

    told: list[tuple[Params, float]] = []

    class Recorder:
        def __init__(self, setting: Setting) -> None:
            self.setting = setting

        def ask(self) -> Params:
            return self.setting.old[0].params[len(told)]

        def tell(self, params: Params, y: float) -> None:
            told.append((params, y))

    made: list[Recorder] = []

    def build(setting: Setting) -> Recorder:
        made.append(Recorder(setting))
        return made[0]

    rows, before = run_peer(problem(log=log), build, Run("s", "p", "m", 0, 5), Caps())
    assert before >= 0
    # The same configurations have the same values as old rows and as trials.
    np.testing.assert_allclose([y for _, y in told], made[0].setting.old[0].y[:5], rtol=1e-9)
    values = [row["value"] for row in rows]
    assert np.argsort(values).tolist() == np.argsort([-y for _, y in told]).tolist()
    expected = [-np.log(value) if log else -value for value in values]
    np.testing.assert_allclose([y for _, y in told], expected, rtol=1e-9)


def test_columns_go_there_and_back() -> None:
    from columns import columns, decode, encode

    kinds = {column.name: (column.kind, len(column.levels)) for column in columns(SPACE)}
    numbers = {"lr": ("number", 0), "width": ("number", 0)}
    assert kinds == {**numbers, "layers": ("ordered", 5), "batch": ("ordered", 3), "schedule": ("label", 4)}
    for u in SPACE.sample(np.random.default_rng(2), 200):
        params = SPACE.decode(u)
        row = encode(SPACE, params)
        assert decode(SPACE, row) == params
        assert isinstance(row["schedule"], str)
        assert all(0 <= float(row[name]) <= 1 for name in ("lr", "width", "layers", "batch"))
    middle = encode(SPACE, {"lr": 1e-3, "width": 128, "layers": 3, "batch": 64, "schedule": None})
    # 1e-3 is the logarithmic middle of its range; 64 is the second of three sizes.
    assert middle["lr"] == pytest.approx(0.5)
    assert (middle["layers"], middle["batch"]) == (0.5, 0.5)


def test_what_can_be_listed_is_listed() -> None:
    from peer import Caps, choices, run_peer
    from with_nothing import build

    listed = [SPACE.decode(u) for u in SPACE.sample(np.random.default_rng(3), 7)]
    assert choices(problem(listed)) == listed
    assert choices(problem()) is None  # continuous
    rows, _ = run_peer(problem(listed), build, Run("s", "p", "peer-random", 0, 30), Caps())
    possible = {problem().objective(params, np.random.default_rng()) for params in listed}
    assert {row["value"] for row in rows} <= possible

    few = Space({"a": IntDistribution(0, 6), "b": CategoricalDistribution(["x", "y"])})
    small = Problem("q", few, History(few, ()), lambda *_: 0.0, lambda _: 0.0)
    listing = choices(small)
    assert listing is not None
    assert len({tuple(params.items()) for params in listing}) == 14
    many = Space({"a": IntDistribution(0, 100), "b": IntDistribution(0, 100)})
    assert choices(Problem("r", many, History(many, ()), lambda *_: 0.0, lambda _: 0.0)) is None


def test_other_caps_are_another_method() -> None:
    from peer import MODULES, Caps, method_name, usual_caps

    for name in MODULES:
        assert method_name(name, usual_caps(name)) == name
    assert method_name("ax", Caps(tasks=10, rows=100)) == "ax:tasks=10,rows=100"


def test_a_trial_without_a_value_is_refused() -> None:
    from peer import Caps, run_peer
    from with_nothing import build

    given = problem()
    failing = Problem("p", SPACE, given.history, lambda *_: float("nan"), given.regret)
    with pytest.raises(ValueError, match="not told of failed trials"):
        run_peer(failing, build, Run("s", "p", "peer-random", 0, 1), Caps())
