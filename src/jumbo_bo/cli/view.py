"""What all commands share: the console, numbers, and errors of a person as a line instead of a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from jumbo_bo.errors import UserError, escaped, printable

# Exit codes: 0 done, 1 something is wrong and the message says what to do, 2 wrong usage (Typer's), 130 Ctrl-C.
FAILED, USAGE, INTERRUPTED = 1, 2, 130


@contextmanager
def explained(command: str, kept: str = "") -> Iterator[None]:
    """Errors that a person can act on are printed as 'jumbo run: ...' on standard error, exit code 1; Ctrl-C says what
    is kept, exit code 130. Any other exception is a bug of ours and keeps its traceback; JUMBO_DEBUG=1 shows that
    of the others as well."""
    try:
        yield
    except KeyboardInterrupt:
        console(stderr=True).print(f"\nStopped. {kept}".rstrip())
        raise typer.Exit(INTERRUPTED) from None
    except UserError as error:
        if os.environ.get("JUMBO_DEBUG"):
            raise
        console(stderr=True).print(f"jumbo {command}: {error}", style="red")
        raise typer.Exit(FAILED) from None


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


def number(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


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
