"""Imports point one way, from the edges to the maths, and `import jumbo_bo` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src" / "jumbo_bo"

# A module imports from earlier lines only; the modules of a package (methods, bench) also from each other.
LAYERS = (
    ("axes", "errors", "paths", "supervise"),
    ("extras",),
    ("space", "warp", "summary", "storage"),
    ("frames", "kernel", "likeness"),
    ("history", "toml", "gp"),
    ("row_gp",),
    ("features",),
    ("training", "blr"),
    ("readers", "pretrain", "learners"),
    ("nets", "guess", "trackers"),
    ("acquisition", "icm", "theory"),
    ("argmax",),
    ("methods",),
    ("explain",),
    ("optimizer",),
    ("studies", "study_file", "transfer", "botorch"),
    ("sampler", "report", "runner"),
    ("bench",),
    ("demo",),
    ("cli",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
JAX = {"pretrain.py", "learners/bnn.py", "learners/copula.py"}
ONLY_IN = {
    "jax": JAX,
    "optax": JAX,
    "blackjax": {"learners/bnn.py"},
    "pickle": {"bench/tables.py"},
    "torch": {"botorch.py"},
    "botorch": {"botorch.py"},
    "gpytorch": {"botorch.py"},
    "mlflow": {"trackers/mlflow.py"},
    "wandb": {"trackers/wandb.py"},
    "ray": {"runner/engines.py"},
}

FILES = [path for path in sorted(SRC.rglob("*.py")) if path != SRC / "__init__.py"]


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules a file imports, at any depth, except under `if TYPE_CHECKING`."""
    package = ["jumbo_bo", *path.relative_to(SRC).parent.parts]
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            # `from jumbo_bo import gp` names a module, `from jumbo_bo.gp import fit` a function in one.
            yield from (f"{module}.{alias.name}" if module == "jumbo_bo" else module for alias in node.names)
        todo.extend(ast.iter_child_nodes(node))


def layer_name(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    me = layer_name(path)
    assert me in RANK, f"{path.name} has no place in the layers; add {me!r} to LAYERS in {Path(__file__).name}"
    for name in imported(path):
        top, *rest = name.split(".")
        if top == "jumbo_bo" and rest:
            other = rest[0]
            assert other in RANK, f"{path.name} imports {name}; import from the module that defines it"
            inside_package = other == me and (SRC / me).is_dir()
            assert inside_package or RANK[other] < RANK[me], f"{me} must not import {other}"
        allowed = ONLY_IN.get(top)
        here = path.relative_to(SRC).as_posix()
        assert allowed is None or here in allowed, f"{here} imports {top}, which only {allowed} may"


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
