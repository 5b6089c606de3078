"""Waiting for somebody else: who it is and how long it can take is said on standard error, unless it is short."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from jumbo_bo.errors import masked, printable

SHORT = 2.0  # seconds


@contextmanager
def waiting(what: str, most: float, after: str = "") -> Iterator[None]:
    """Says so when the block takes longer than SHORT. `most` is the longest it can take, in seconds, and `after` what
    happens then; the block itself has to end by then."""
    limit = f"{most:.0f} s" if most < 120 else f"{most / 60:.0f} min"
    text = f"Waiting for {what} (at most {limit}{after and ', '}{after}) ..."
    timer = Timer(SHORT, lambda: print(printable(masked(text)), file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
