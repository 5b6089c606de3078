"""Bayesian optimization that learns from your old runs.

The public names are loaded on first use, so `import jumbo_bo` costs almost nothing and never loads jax.
The function `pretrain` is not among them: a package cannot reliably show a function under the name of its own
submodule. Use `from jumbo_bo.pretrain import pretrain`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumbo_bo.features import FeatureNet
    from jumbo_bo.history import History
    from jumbo_bo.methods import METHODS
    from jumbo_bo.optimizer import Optimizer, Suggestion
    from jumbo_bo.readers import read_history
    from jumbo_bo.sampler import JumboSampler
    from jumbo_bo.space import Space

    __version__: str

__all__ = [
    "METHODS",
    "FeatureNet",
    "History",
    "JumboSampler",
    "Optimizer",
    "Space",
    "Suggestion",
    "__version__",
    "read_history",
]

_HOME = {
    "FeatureNet": "features",
    "History": "history",
    "JumboSampler": "sampler",
    "METHODS": "methods",
    "Optimizer": "optimizer",
    "Space": "space",
    "Suggestion": "optimizer",
    "read_history": "readers",
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
