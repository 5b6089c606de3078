"""What all commands share: the console, numbers, and errors as a line instead of a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from jumbo_bo.errors import UserError

# Exit codes: 0 done, 1 something is wrong and the message says what to do, 2 wrong usage (Typer's), 130 Ctrl-C.
FAILED, USAGE, INTERRUPTED = 1, 2, 130


@contextmanager
def explained(command: str, kept: str = "") -> Iterator[None]:
    """Errors that a person can act on are printed as 'jumbo run: ...' on standard error, exit code 1; Ctrl-C says what
    is kept, exit code 130. JUMBO_DEBUG=1 shows the traceback."""
    try:
        yield
    except KeyboardInterrupt:
        console(stderr=True).print(f"\nStopped. {kept}".rstrip())
        raise typer.Exit(INTERRUPTED) from None
    except (UserError, ValueError, OSError) as error:
        if os.environ.get("JUMBO_DEBUG"):
            raise
        console(stderr=True).print(f"jumbo {command}: {error}", style="red")
        raise typer.Exit(FAILED) from None


def number(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


def console(stderr: bool = False) -> Console:
    """A file or a pipe gets whole lines."""
    made = Console(stderr=stderr, markup=False, highlight=False)
    made.soft_wrap = not made.is_terminal
    return made
