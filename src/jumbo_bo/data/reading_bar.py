"""How far reading old runs has come, on a terminal, when it takes long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds; what is read by then needs no bar


@contextmanager
def reading_bar(count: Callable[[], int | None], patience: float = PATIENCE) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told of every batch; `count` is asked for all rows once there is a bar."""
    bar: Any = None
    start, rows = time.monotonic(), 0

    def seen(n: int) -> None:
        nonlocal bar, rows
        rows += n
        seconds = time.monotonic() - start
        if bar is None and seconds >= patience:
            bar = _shown(count)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=rows, speed=rows / max(seconds, 1e-9))

    try:
        yield seen
    finally:
        if bar is not None:
            bar.stop()


def _shown(count: Callable[[], int | None]) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    text = TextColumn("{task.completed:,.0f} rows, {task.fields[speed]:,.0f} per second")
    columns = (TextColumn("reading old runs"), BarColumn(), text, TimeRemainingColumn())
    bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
    bar.add_task("", total=count() if console.is_terminal else None, speed=0.0)
    bar.start()
    return bar
