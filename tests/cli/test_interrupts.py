"""Signals as a wish that is granted between two steps of the work."""

import os
import signal
import time

import pytest

from jumbo_bo.cli import interrupts
from jumbo_bo.cli.interrupts import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heeded_where_that_is_asked_for(number):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    with Interrupts() as wishes:
        wishes.heed()
        os.kill(os.getpid(), number)
        steps = [1, 2]  # goes on
        with pytest.raises(KeyboardInterrupt):
            wishes.heed()
        wishes.heed()  # once
    assert steps == [1, 2]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before


def test_work_that_does_not_look_is_interrupted_even_if_it_swallows_the_first(monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE", 0.1)
    monkeypatch.setattr(interrupts, "AGAIN", 1.0)  # where it hits is known, also on a busy machine
    start = time.monotonic()
    with Interrupts():
        with pytest.raises(KeyboardInterrupt):
            _terminated()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(300)
    assert time.monotonic() - start < 200


def _terminated():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(300)


def test_nothing_comes_after_the_end(monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE", 0.5)
    with Interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.7)
