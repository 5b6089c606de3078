"""Rooms import in one direction, from the edges to the maths, `import jumbo_bo` stays light, and files are short."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

REPO = Path(__file__).resolve().parent.parent
SRC = REPO / "src" / "jumbo_bo"

# A room imports from earlier ones only, and from those that the last line of its `__init__.py` names. `jumbo_bo` is the
# room of the modules beside the folders.
ROOMS = (
    "space",
    "data",
    "models",
    "learning",
    "search",
    "methods",
    "study",
    "jumbo_bo",
    "report",
    "runner",
    "bench",
    "cli",
)
JAX = {
    "learning/learners/bnn.py",
    "learning/learners/copula.py",
    "learning/learners/deep_kernel.py",
    "learning/pretrain.py",
}
ONLY_IN = {
    "jax": JAX,
    "optax": JAX,
    "blackjax": {"learning/learners/bnn.py"},
    "pickle": {"bench/tables.py"},
    "torch": {"botorch.py"},
    "botorch": {"botorch.py"},
    "gpytorch": {"botorch.py"},
    "mcp": {"cli/mcp.py"},
    "mlflow": {"data/trackers/mlflow.py"},
    "wandb": {"data/trackers/wandb.py"},
    "ray": {"runner/engines.py"},
}


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", REPO / "docs" / "figures" / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house = script()


def may_import(room: str) -> list[str]:
    path = SRC / "__init__.py" if room == "jumbo_bo" else SRC / room / "__init__.py"
    words = re.search(r"^May import: (.+)\.$", ast.get_docstring(ast.parse(path.read_text())) or "", re.MULTILINE)
    assert words, f"{path.relative_to(SRC)} does not say 'May import: ...' on a line of its docstring"
    return [] if words[1] == "no other room" else words[1].split(", ")


def test_every_folder_is_a_room() -> None:
    assert house.folder() == SRC
    assert set(house.doors()) == set(ROOMS), "a folder without a place in the order; add it to ROOMS"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_in_one_direction(room: str) -> None:
    allowed = may_import(room)
    assert allowed == [other for other in ROOMS[: ROOMS.index(room)] if other in allowed], "earlier rooms, in order"
    assert set(allowed) == house.doors()[room], f"what {room} imports, and what its __init__.py says it may"


@pytest.mark.parametrize("module", house.modules())
def test_what_a_module_imports(module: str) -> None:
    here = house.modules()[module].relative_to(SRC).as_posix()
    for name in house.imported(module):
        top = name.partition(".")[0]
        if top == "jumbo_bo":
            known = name in house.modules() or name == "jumbo_bo"
            assert known, f"{here} imports {name}, which is not a module"
            if house.room(module) is None:
                assert house.room(name) is None, f"{here} is imported by every room and cannot import {name}"
        allowed = ONLY_IN.get(top)
        assert allowed is None or here in allowed, f"{here} imports {top}, which only {allowed} may"


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    TopologicalSorter({module: house.ours(module) for module in house.modules()}).prepare()


def test_public_names_are_not_imported_inside() -> None:
    for module, path in house.modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "jumbo_bo" and node.level == 0:
                for alias in node.names:
                    assert f"jumbo_bo.{alias.name}" in house.modules(), f"{module}: import {alias.name} from its module"


def test_the_picture_is_that_of_the_imports() -> None:
    assert house.shown() == house.picture(), "run: python docs/figures/rooms.py --write"


def test_the_walk_of_a_suggestion() -> None:
    calls, crossings = house.walk(trials=2)
    assert {"optimizer.py", "methods/mixture.py", "models/gp.py", "search/argmax.py", "explain.py"} <= set(calls)
    assert len(calls) <= crossings < calls.total()


LONGEST = 300  # lines


@pytest.mark.parametrize("folder", ["src", "benchmarks", "docs", "tests"])
def test_files_are_readable_in_one_sitting(folder: str) -> None:
    files = sorted((REPO / folder).rglob("*.py"))
    assert files
    sizes = {path.relative_to(REPO).as_posix(): len(path.read_text().splitlines()) for path in files}
    long = {name: lines for name, lines in sizes.items() if lines > LONGEST}
    assert not long, f"more than {LONGEST} lines; split by idea: {long}"


def loaded_by(code: str) -> set[str]:
    """Top-level modules in `sys.modules` after running the code in a fresh interpreter."""
    show = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_importing_the_package_is_nearly_free() -> None:
    assert not loaded_by("import jumbo_bo") & {"jax", "torch", "optuna", "numpy", "scipy", "polars"}


def test_suggesting_needs_neither_jax_nor_torch() -> None:
    assert not loaded_by("from jumbo_bo import FeatureNet, History, METHODS, Optimizer") & {"jax", "optax", "torch"}


def test_public_names_exist() -> None:
    import jumbo_bo

    assert set(jumbo_bo.__all__) <= set(dir(jumbo_bo))
    for name in jumbo_bo.__all__:
        assert getattr(jumbo_bo, name) is not None
    with pytest.raises(AttributeError, match=r"no attribute 'Optimiser'; it has .*Optimizer"):
        _ = jumbo_bo.Optimiser
