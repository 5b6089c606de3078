"""The command line: help texts, the demo on a small stand-in problem, messages and exit codes."""

from __future__ import annotations

import html
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution
from rich.console import Console
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.bench import demo
from jumbo_bo.bench.demo import Case, Row
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import FCNET, SMALL, table
from jumbo_bo.cli import demo as view
from jumbo_bo.data.history import History
from jumbo_bo.extras import PACKAGES
from jumbo_bo.learning import pretrain
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.space.space import Array, Params, Space

SPACE = Space(
    {
        "lr": CategoricalDistribution((0.001, 0.01, 0.1, 0.2, 0.5)),
        "units": CategoricalDistribution((16, 32, 64, 128)),
        "activation": CategoricalDistribution(("relu", "tanh", "gelu")),
    }
)
CONFIGURATIONS = [SPACE.decode(u) for u in SPACE.grid()]  # 60


def surface(shift: float) -> Array:  # -> (60,)
    x = SPACE.grid() - [0.3 + shift, 0.7, 0.5]
    loss: Array = 0.1 + (x**2).sum(axis=1)
    return loss


def small_case(_target: str = "protein") -> Case:
    tasks = [pl.DataFrame(CONFIGURATIONS).with_columns(loss=surface(s), task=pl.lit(f"old{s}")) for s in (0.1, -0.1)]
    history = History.from_frame(pl.concat(tasks), SPACE, task="task", objective="loss")
    mean = surface(0.0)

    def objective(params: Params, rng: np.random.Generator) -> float:
        return float(mean[CONFIGURATIONS.index(params)] + 0.01 * rng.random())

    def regret(params: Params) -> float:
        return float(mean[CONFIGURATIONS.index(params)] - mean.min())

    return Case(Problem("small", SPACE, history, objective, regret), np.sort(mean))


@pytest.fixture(scope="module")
def small_net() -> FeatureNet:
    return pretrain.pretrain(small_case().problem.history, pretrain.Pretraining(max_epochs=20))


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch, small_net: FeatureNet, tmp_path: Path) -> list[int]:
    """The small problem instead of the real one. The list gets a seed each time a net is trained."""
    seeds: list[int] = []

    def quick(_history: History, _options: str, seed: int, progress: bool) -> FeatureNet:
        seeds.append(seed)
        return small_net

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo, "build", small_case)
    monkeypatch.setattr(pretrain, "pretrain", quick)
    return seeds


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/demo.db"


def jumbo(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    assert "Traceback" not in result.output
    return result


def trials(storage: str, study: str = "small-protein-seed0") -> list[optuna.trial.FrozenTrial]:
    found = optuna.load_study(study_name=study, storage=storage)
    return found.get_trials()


def test_targets_are_the_tables() -> None:
    assert [target.value for target in view.Target] == list(FCNET.files)


def test_demo_shows_and_stores_every_trial(learned: list[int], storage: str) -> None:
    result = jumbo("demo", "--trials", "3", "--storage", storage)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("trial ")] == ["trial 1", "trial 2", "trial 3"]
    for text in (
        "New problem: protein",
        "120 rows used",
        "old0.1",
        "There are 60 configurations",
        "In brackets the rank among all 60 configurations",
        "with old runs",
        "cold start",
        "after 3 trials",
        "All of this as a page: jumbo-demo.html",
        "jumbo bench fcnet-dt --problems protein",
        "pip install 'jumbo-bo[bench]'",
        "Continuing",
        storage,
    ):
        assert (text in result.output) == (text != "Continuing")
    finished = trials(storage)
    assert [set(t.user_attrs) for t in finished] == [{"why", "jumbo"}] * 3
    assert len({tuple(t.params.values()) for t in finished}) == 3
    assert learned == [0]


def test_interrupted_demo_continues_where_it_stopped(
    learned: list[int], storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Params] = []

    def interrupted(target: str) -> Case:
        case = small_case(target)

        def objective(params: Params, rng: np.random.Generator) -> float:
            if len(calls) == 2:
                raise KeyboardInterrupt
            calls.append(params)
            return case.problem.objective(params, rng)

        return replace(case, problem=replace(case.problem, objective=objective))

    monkeypatch.setattr(demo, "build", interrupted)
    stopped = jumbo("demo", "--trials", "3", "--storage", storage)
    assert stopped.exit_code == 130
    assert f"Finished trials are kept in {storage}; run the same command again" in stopped.output
    assert len(trials(storage)) == 2

    monkeypatch.setattr(demo, "build", small_case)
    resumed = jumbo("demo", "--trials", "3", "--storage", storage)
    assert resumed.exit_code == 0
    assert "Continuing after the 2 of 3 trials" in resumed.output
    assert re.findall(r"^trial \d", resumed.output, re.M) == ["trial 3"]
    assert learned == [0], "the net of the first run is used again"

    whole = f"sqlite:///{tmp_path}/whole.db"
    jumbo("demo", "--trials", "3", "--storage", whole)
    assert [(t.params, t.value) for t in trials(storage)] == [(t.params, t.value) for t in trials(whole)]


def test_complete_demo_is_shown_again(learned: list[int], storage: str) -> None:
    jumbo("demo", "--trials", "2", "--storage", storage)
    again = jumbo("demo", "--trials", "2", "--storage", storage)
    assert again.exit_code == 0
    assert "Already complete: 2 trials" in again.output
    assert "--seed" in again.output
    assert "In brackets the rank" in again.output
    assert "Continuing after the 2 of 3" in jumbo("demo", "--trials", "3", "--storage", storage).output
    assert jumbo("demo", "--trials", "2", "--storage", storage, "--seed", "1").exit_code == 0
    assert len(trials(storage)) == 3
    assert len(trials(storage, "small-protein-seed1")) == 2
    assert learned == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--target", "proteins"], 2, "'protein', 'parkinsons', 'naval', 'slice'"),
        (["--trials", "0"], 2, "--trials"),
        (["--storage", "demo.db"], 2, "sqlite:///demo.db"),
        (["--storage", "sqlite:////no/such/folder/demo.db"], 1, "check that it exists"),
        (["--storage", "nothing://demo"], 1, "cannot use the storage nothing://demo"),
    ],
)
def test_mistakes_are_explained(learned: list[int], arguments: list[str], code: int, expected: str) -> None:
    result = jumbo("demo", *arguments)
    assert result.exit_code == code
    assert expected in " ".join(result.output.replace("│", " ").split())


def test_data_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in PACKAGES:
        monkeypatch.setitem(sys.modules, module, None)
    table.cache_clear()
    for target in view.Target:
        case = demo.build(target.value)
        others = {other.value for other in view.Target} - {target.value}
        assert {task.name: len(task.y) for task in case.problem.history.tasks} == dict.fromkeys(others, 15552)
        assert len(case.losses) == SMALL.space.cardinality == 15552
        assert (np.diff(case.losses) >= 0).all()
        best = SMALL.space.decode(SMALL.space.grid()[table(SMALL, target.value).values.mean(axis=1).argmin()])
        assert case.problem.regret(best) == 0.0
        assert case.problem.objective(best, np.random.default_rng(0)) == pytest.approx(case.losses[0], rel=0.5)


def test_the_old_runs_are_a_head_start() -> None:
    """The claim of the demo, on its data. Over six seeds the first trial has rank 21 to 41 of 15,552."""
    case = demo.build("naval")
    net = pretrain.pretrain(case.problem.history, pretrain.Pretraining(max_epochs=5))
    ((suggestion, value),) = demo.search(case.problem, net, demo.METHOD, (), 1, seed=0)
    assert demo.score(case, [Row(suggestion.params, value, "")]).ranks[0] < 300


def test_a_database_of_the_demo_on_other_data_is_left_alone(learned: list[int], storage: str) -> None:
    older = optuna.create_study(storage=storage, study_name="demo-protein-seed0", direction="minimize")
    wide = {"units": CategoricalDistribution((16, 1024))}
    older.add_trial(optuna.trial.create_trial(params={"units": 1024}, distributions=wide, value=0.1))
    result = jumbo("demo", "--trials", "2", "--storage", storage)
    assert result.exit_code == 0
    assert "Continuing" not in result.output
    assert [t.params for t in trials(storage, "demo-protein-seed0")] == [{"units": 1024}]
    assert len(trials(storage)) == 2


def test_file_that_is_no_database(learned: list[int], storage: str, tmp_path: Path) -> None:
    (tmp_path / "demo.db").write_text("my notes\n" * 200)
    result = jumbo("demo", "--storage", storage)
    assert result.exit_code == 1
    assert "file is not a database" in result.output
    assert (tmp_path / "demo.db").read_text().startswith("my notes")


def test_ranks_are_of_the_lowest_value_so_far() -> None:
    case = small_case()
    order = np.argsort(surface(0.0), kind="stable")

    def by_rank(rank: int) -> Params:
        return CONFIGURATIONS[order[rank - 1]]

    rows = [Row(by_rank(59), 0.5, ""), Row(by_rank(1), 0.3, ""), Row(by_rank(49), 0.2, ""), Row(by_rank(1), 0.1, "")]
    end = demo.score(case, rows)
    assert end.ranks == (59, 1, 49, 1)
    assert end.regrets[1] == end.regrets[3] == 0
    assert end.regrets[0] > end.regrets[2] > 0


def test_the_page_is_written_and_offered(
    learned: list[int], storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jumbo("demo", "--trials", "2", "--storage", storage, "--output", "a.html").exit_code == 0
    page = (tmp_path / "a.html").read_text()
    for row in optuna.load_study(study_name="small-protein-seed0", storage=storage).trials:
        assert html.escape(row.user_attrs["why"]) in page
    for text in ("<svg", "cold start", "2 trials with and without old runs", "prefers-color-scheme: dark"):
        assert text in page
    assert "<script" not in page
    assert jumbo("demo", "--trials", "2", "--storage", storage, "--output", "no/a.html").exit_code == 1
    opened: list[str] = []
    monkeypatch.setattr(view.typer, "launch", opened.append)
    monkeypatch.setattr(view.typer, "confirm", lambda _: True)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(view, "console", lambda: terminal)
    monkeypatch.setattr(view.sys.stdin.__class__, "isatty", lambda _: True, raising=False)
    view.demo(trials=2, storage=storage, target=view.Target.protein, seed=0, output=Path("b.html"))
    assert opened == [(tmp_path / "b.html").as_uri()]


def test_json(learned: list[int], storage: str) -> None:
    result = jumbo("demo", "--trials", "2", "--storage", storage, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert set(said) == {"target", "best", "with_old_runs", "cold_start", "written"}  # as docs/agents.md lists them
    assert len(said["with_old_runs"]["regrets"]) == len(said["cold_start"]["ranks"]) == 2
    assert said["best"]["value"] == min(trial.value for trial in trials(storage))
    assert "Best configuration" in result.stderr


def test_short_reason() -> None:
    why = "Old runs rate this 0.6 sd above average, your 12 trials 1.4 sd below average. Exploiting"
    assert demo.short(f"{why}: expected 0.229 (90%: 0.1 to 1.1).") == why
    assert demo.short("Drawn at random.") == "Drawn at random"


def test_live_table_fits_the_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=60, height=10, color_system=None)
    rows: list[Row] = []
    view._watch(console, rows, (Row({}, 1 / n, f"The old runs say better, {'very ' * 9}") for n in range(1, 21)))
    assert len(rows) == 20
    frames = [re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", f).split("\n") for f in file.getvalue().split("\x1b[1A")]
    assert max(len(line.strip("\r")) for frame in frames for line in frame) <= 60
    assert [line.split()[0] for line in frames[-1] if line.strip()] == ["trial", *map(str, range(1, 21))]
