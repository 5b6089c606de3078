"""`jumbo init` on a terminal: the guess is accepted, or corrected line by line. Scripts are asked nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

from jumbo_bo.errors import UserError

if TYPE_CHECKING:
    from jumbo_bo.study.correct import Wishes
    from jumbo_bo.study.guess import Guess
    from jumbo_bo.study.table import Table

QUESTION = """
Is this right? Enter writes it, q writes nothing.
To correct a line, type for example: {example}   (? for more)
> """
HELP = """A correction is COLUMN = WHAT, one at a time:
  T = 20 to 95 (step 5)       a range; also (log) and (integer)
  size = 16 | 32 | 64         choices
  gpu = no                    not a parameter
  gpu = parameter             a parameter after all, with a guessed range
  score = objective, maximize
  plant = task                which problem a row belongs to"""


def possible(screen: Console) -> bool:
    return screen.is_terminal and sys.stdin.isatty()


def agreed(screen: Console, table: Table, wishes: Wishes, show: Callable[[Guess, Guess | None], None]) -> Guess | None:
    """What is written in the end; None: nothing. `show` is given the guess, and after a correction the one before."""
    from jumbo_bo.study.correct import corrected

    wishes, guessed = _with_objective(screen, table, wishes)
    if guessed is None:
        return None
    show(guessed, None)
    while True:
        answer = _answer(QUESTION.format(example=_example(guessed)))
        if answer.lower() in ("", "y", "yes"):
            return guessed
        if answer.lower() in ("q", "quit", "exit", "n", "no"):
            return None
        if answer in ("?", "h", "help"):
            screen.print(HELP)
            continue
        try:
            changed = corrected(wishes, table.frame, guessed, answer)
            found = changed.guess(table)
        except UserError as error:
            screen.print(str(error), style="red")
            continue
        show(found, guessed)
        wishes, guessed = changed, found


def _with_objective(screen: Console, table: Table, wishes: Wishes) -> tuple[Wishes, Guess | None]:
    """Asks for the objective when it cannot be guessed."""
    from dataclasses import replace

    from jumbo_bo.data.frames import closest
    from jumbo_bo.study.guess import Unclear

    while True:
        try:
            return wishes, wishes.guess(table)
        except Unclear as unclear:
            columns = list(unclear.candidates)
        screen.print(f"Which column is the result that you want to improve? One of {', '.join(columns)} (q: none)")
        answer = _answer("> ")
        if answer.lower() in ("", "q", "quit", "exit"):
            return wishes, None
        if answer in table.frame.columns:
            wishes = replace(wishes, objective=answer)
        else:
            screen.print(f"There is no column {answer!r}{closest(answer, columns)}", style="red")


def _example(guessed: Guess) -> str:
    """A correction of this very table that would be understood."""
    left = [column for column, why in guessed.notes.items() if why.startswith("left out")]
    column = {new: old for old, new in guessed.rename.items()}
    name = guessed.space.names[-1]
    return f"{left[0]} = parameter" if left else f"{column.get(name, name)} = no"


def _answer(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:  # Ctrl-D
        print()
        return "q"
