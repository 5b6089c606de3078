"""Old runs as `jumbo import` shows them: whatever there is fits the terminal."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from optuna.distributions import FloatDistribution
from rich.console import Console

from jumbo_bo.cli.old_runs import fitted, show
from jumbo_bo.data.history import History
from jumbo_bo.space.space import Space


def many(tasks: int, shared: bool = True) -> History:
    x = np.linspace(0, 1, 12)
    frames = [
        pl.DataFrame({"x": x if shared else (x + i) / tasks, "value": (i % 3 - 1.0) * x + x**2, "task": f"t{i:02d}"})
        for i in range(tasks)
    ]
    return History.from_frame(pl.concat(frames), Space({"x": FloatDistribution(0, 2)}), task="task")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("history"), [many(2), many(5), many(45)])
def test_what_is_shown_fits_the_terminal(history: History, width: int) -> None:
    screen = Console(width=width, record=True, force_terminal=True, color_system=None, markup=False, highlight=False)
    with screen.capture() as captured:
        show(screen, history, {})
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= width
    assert "How alike the tasks are" in captured.get()
    columns = min(len(history.tasks), 40) - 1
    assert ("--json shows all" in captured.get()) == (columns * 7 + 11 > width)
    assert ("Only the first 40 tasks" in captured.get()) == (len(history.tasks) > 40)


def test_tasks_that_cannot_be_compared() -> None:
    screen = Console(width=80, record=True, force_terminal=True, color_system=None)
    with screen.capture() as captured:
        show(screen, many(3, shared=False), {})
    assert "The tasks cannot be compared" in captured.get()


def test_wrapping_keeps_words_and_indents() -> None:
    text = "dropped rows:\n  a: 3 x lr is empty, e.g. runs.csv row 2\n    and so on\nignored columns:\n  b, c"
    assert fitted(text, None).splitlines()[1] == "  a: 3 x lr is empty, e.g. runs.csv row 2 and so on"
    narrow = fitted(text, 20).splitlines()
    assert max(map(len, narrow)) <= 20
    assert narrow[1:3] == ["  a: 3 x lr is", "    empty, e.g."]
    assert " ".join(" ".join(narrow).split()) == " ".join(text.split())
