"""One BLAS thread around small linear algebra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes longer than a suggestion: once."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Small matrices are many times slower on several BLAS threads."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit
