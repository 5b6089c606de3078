"""What all commands share: the console, numbers, and errors of a person as a line instead of a traceback."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from jumbo_bo.errors import UserError, clip, escaped, printable

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

# Exit codes: 0 done, 1 something is wrong and the message says what to do, 2 wrong usage (Typer's), 130 Ctrl-C.
FAILED, USAGE, INTERRUPTED = 1, 2, 130


@contextmanager
def explained(command: str, kept: str = "", in_json: bool = False) -> Iterator[None]:
    """Errors that a person can act on are printed as 'jumbo run: ...' on standard error, exit code 1; Ctrl-C says what
    is kept, exit code 130. Any other exception is a bug of ours and keeps its traceback; JUMBO_DEBUG=1 shows that
    of the others as well. With `in_json` both are one JSON object on a line of its own."""
    try:
        yield
    except KeyboardInterrupt:
        stopped = f"Stopped. {kept}".rstrip()
        if in_json:
            _say_error(command, stopped, INTERRUPTED)
        else:
            console(stderr=True).print(f"\n{stopped}")
        raise typer.Exit(INTERRUPTED) from None
    except UserError as error:
        if os.environ.get("JUMBO_DEBUG"):
            raise
        if in_json:
            _say_error(command, str(error), FAILED)
        else:
            console(stderr=True).print(f"jumbo {command}: {error}", style="red")
        raise typer.Exit(FAILED) from None


def _say_error(command: str, text: str, code: int) -> None:
    typer.echo(as_json({"error": text, "command": command, "exit_code": code}), err=True)


@contextmanager
def usable(place: object) -> Iterator[None]:
    """What the operating system refuses here (no permission, a full disk) is for the person to fix. `place` is named
    when the error names no file."""
    try:
        yield
    except (UserError, BrokenPipeError):  # Typer ends quietly when nobody reads on
        raise
    except OSError as error:
        text = f"{error.filename or place} cannot be used: {error.strerror}" if error.strerror else str(error)
        raise UserError(text) from error


def number(value: float, *others: float) -> str:
    """Four digits, and more where it would look like one of the others."""
    gap = min((abs(value - other) for other in others if other != value), default=0.0)
    digits = 1 + math.floor(math.log10(abs(value))) - math.floor(math.log10(gap)) if value and gap else 4
    return f"{value:#.{min(max(digits, 4), 9)}g}".rstrip(".")


def settings(trial: FrozenTrial) -> str:
    """On one line, with short names."""
    from jumbo_bo.space.values import shown

    names = short_names(list(trial.params))
    return ", ".join(f"{names[key]}={clip(shown(v, trial.distributions[key]), 20)}" for key, v in trial.params.items())


def short_names(names: Sequence[str]) -> dict[str, str]:
    """'config/optimizer.lr' is lr, unless another one ends like this. Units stay whole.

    >>> short_names(["model.lr", "head.units", "body.units", "rig.flow (l/h)"])
    {'model.lr': 'lr', 'head.units': 'head.units', 'body.units': 'body.units', 'rig.flow (l/h)': 'flow (l/h)'}
    """

    def ends(name: str) -> list[str]:  # the shortest first
        plain = len(re.split(r"[(\[{]", name, maxsplit=1)[0])  # what stands in brackets is no path
        starts = [i + 1 for i in range(plain) if name[i] in "./:" and name[i + 1 :].strip()]
        return [name[i:] for i in [*reversed(starts), 0]]

    all_ends = [end for name in names for end in ends(name)]
    return {name: next((end for end in ends(name) if all_ends.count(end) == 1), name) for name in names}


def duration(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


class Screen(Console):
    """Text from elsewhere (names of columns, what a command printed) cannot steer the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def as_json(value: Any) -> str:
    """On one line, readable, and without characters that a terminal would obey: those are written as escapes."""
    return escaped(json.dumps(value, ensure_ascii=False))


def console(stderr: bool = False) -> Console:
    """A file or a pipe gets whole lines."""
    made = Screen(stderr=stderr, markup=False, highlight=False)
    made.soft_wrap = not made.is_terminal
    return made
