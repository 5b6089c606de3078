"""Members of a net that are trained somewhere else than in this process, such as on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Each = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]]  # f, arguments -> f of each, in order

_where: ContextVar[Each | None] = ContextVar("_where", default=None)


def current() -> Each | None:
    """None: here, one after the other."""
    return _where.get()


@contextmanager
def trained_by(each: Each | None) -> Iterator[None]:
    before = _where.set(each)
    try:
        yield
    finally:
        _where.reset(before)
