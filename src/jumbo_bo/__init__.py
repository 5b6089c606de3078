"""Bayesian optimization that learns from your old runs.

The public names are loaded on first use, so `import jumbo_bo` costs almost nothing and never loads jax.
The function `pretrain` is not among them, as it needs jax: `from jumbo_bo.learning.pretrain import pretrain`.

Beside this file lie the modules that a program imports, and three that every room may import: errors, extras, paths.

May import: space, data, models, learning, search, methods, study.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumbo_bo.correct import corrected_trials, forget_failed, forget_trials, replace_value, restore_trials
    from jumbo_bo.data.curves import read_curves
    from jumbo_bo.data.history import History
    from jumbo_bo.data.readers import read_history
    from jumbo_bo.data.storage import open_storage
    from jumbo_bo.learning.features import FeatureNet
    from jumbo_bo.methods import METHODS
    from jumbo_bo.optimizer import Optimizer, Suggestion
    from jumbo_bo.pruner import JumboPruner
    from jumbo_bo.sampler import JumboSampler
    from jumbo_bo.space.beliefs import about
    from jumbo_bo.space.space import Space

    __version__: str

__all__ = [
    "METHODS",
    "FeatureNet",
    "History",
    "JumboPruner",
    "JumboSampler",
    "Optimizer",
    "Space",
    "Suggestion",
    "__version__",
    "about",
    "corrected_trials",
    "forget_failed",
    "forget_trials",
    "open_storage",
    "read_curves",
    "read_history",
    "replace_value",
    "restore_trials",
]

_HOME = {
    "FeatureNet": "learning.features",
    "History": "data.history",
    "JumboPruner": "pruner",
    "JumboSampler": "sampler",
    "METHODS": "methods",
    "Optimizer": "optimizer",
    "Space": "space.space",
    "Suggestion": "optimizer",
    "about": "space.beliefs",
    "corrected_trials": "correct",
    "forget_failed": "correct",
    "forget_trials": "correct",
    "open_storage": "data.storage",
    "read_curves": "data.curves",
    "read_history": "data.readers",
    "replace_value": "correct",
    "restore_trials": "correct",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jumbo-bo")
    except PackageNotFoundError:
        return "0+source"  # run from a source tree that is not installed
