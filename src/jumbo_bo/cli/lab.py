"""`jumbo ask` and `jumbo tell`: options and what is shown; the work is in jumbo_bo/runner/people.py."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from jumbo_bo.cli.run import StudyPath
from jumbo_bo.cli.view import as_json, console, explained, number, settings, usable
from jumbo_bo.errors import UserError


def ask(
    study: StudyPath,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of experiments to suggest.")] = 1,
    again: Annotated[
        bool,
        typer.Option("--again", help="Show the open experiments (no result yet) instead of suggesting new ones."),
    ] = False,
) -> None:
    """Suggest the next experiments, one JSON line each, for a person to run.

    Each stays open until you report its result with `jumbo tell`. Standard output has only these lines.
    """
    with (
        explained("ask", f"Suggestions already made are kept; show them with: jumbo ask {study} --again"),
        usable(study),
    ):
        from jumbo_bo.runner import people
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.study.study_file import load

        notes = console(stderr=True)
        with opened_book(load(study), create=not again) as book:
            found = filter(people.is_open, book.trials()) if again else people.ask(book, n, notes.print)
            nothing = True
            for trial in found:
                typer.echo(as_json(people.to_json(trial)))
                nothing = False
            if nothing:
                notes.print(f"No experiment is open. To get one, run: jumbo ask {study}")


def tell(
    study: StudyPath,
    trial: Annotated[
        int | None, typer.Argument(metavar="TRIAL", help="The trial number printed by `jumbo ask`.", show_default=False)
    ] = None,
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="The measured value.", show_default=False)
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The experiment failed and has no result.")] = False,
    measured: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A quantity with a limit in STUDY. May be repeated."),
    ] = None,
) -> None:
    """Store the result of an experiment.

    Without TRIAL, results are read from standard input, one JSON object per line: `{"trial": 3, "value": 0.71}`,
    `{"trial": 4, "failed": true}`, `{"trial": 5, "value": 0.7, "measured": {"latency_ms": 18.2}}`, or an experiment of
    your own, `{"params": {"lr": 0.01, "units": 64}, "value": 0.8}`.
    All lines are checked before the first one is stored.
    """
    with explained("tell", "Run it again for the rest; results already stored are named."), usable(study):
        from jumbo_bo.runner import people
        from jumbo_bo.runner.book import best, opened_book
        from jumbo_bo.studies import broken
        from jumbo_bo.study.study_file import load

        if trial is None:
            if failed or sys.stdin.isatty():
                raise UserError(f"which trial? For example: jumbo tell {study} 3 0.71, or JSON lines on standard input")
            try:
                entries = people.parse(sys.stdin)
            except UnicodeDecodeError:
                raise UserError("standard input is not text in UTF-8; send JSON lines") from None
        elif failed == (value is not None):
            raise UserError(f"give either a value or --failed, for example: jumbo tell {study} {trial} 0.71")
        else:
            told = None if value is None else people.number_of(value)
            entries = [people.Entry("", trial, None, told, people.measured_of(measured or []))]
        with opened_book(load(study), create=any(e.number is None for e in entries)) as book:
            stored = people.tell(book, entries)
            top = best(book.trials(), book.file)
            outside = {t.number: broken(t, book.file.space) for t in stored}
        screen = console()
        for t in stored:
            screen.print(f"trial {t.number}: {'failed' if t.value is None else number(t.value)}, stored")
            if broke := ", ".join(outside[t.number]):
                screen.print(f"  It does not meet {broke}: it is learned from, and not counted as the best")
        if top is not None and top.value is not None:
            screen.print(f"Best so far: {number(top.value)} in trial {top.number} ({settings(top)})")
