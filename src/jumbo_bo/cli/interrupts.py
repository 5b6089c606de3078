"""Ctrl-C and `kill` as a wish: noted at once, granted where nothing is cut in half.

An exception that a signal raises may hit any line: in the middle of a write, or where it is swallowed, as in a
finalizer. So a signal only sets a flag, which is looked at between two steps of the work (`heed`). Work that does not
look at it for a while, such as learning from old runs, gets the exception after all, again and again if need be.
"""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Any

WISHES = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 2.0  # seconds until work that does not look at the flag is interrupted
AGAIN = 10.0  # seconds until the next attempt; longer than it takes to end the running commands


class Interrupts:
    """While it is open, the two signals are wishes."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in WISHES:
            self._before[number] = signal.signal(number, self._note)
        if hasattr(signal, "setitimer"):  # not on Windows
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._insist)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._alarm(0.0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def heed(self) -> None:
        """Raises KeyboardInterrupt if that was wished."""
        if self.asked:
            self.asked = False
            self._alarm(0.0)
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        if not self.asked:
            self.asked = True
            self._alarm(PATIENCE)

    def _insist(self, *_: object) -> None:
        self._alarm(AGAIN)
        raise KeyboardInterrupt

    def _alarm(self, seconds: float) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)
