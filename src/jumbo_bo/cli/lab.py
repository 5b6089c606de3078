"""`jumbo ask` and `jumbo tell`: options and what is shown; the work is in jumbo_bo/runner/people.py."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from jumbo_bo.cli.progress import outcome
from jumbo_bo.cli.run import StudyPath, trials_in_words
from jumbo_bo.cli.view import as_json, console, explained, number, settings, usable
from jumbo_bo.errors import UserError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from jumbo_bo.space.space import Params, Space


def ask(
    study: StudyPath,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of experiments to suggest.")] = 1,
    again: Annotated[
        bool,
        typer.Option("--again", help="Show the open experiments (no result yet) instead of suggesting new ones."),
    ] = False,
    fix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Hold a parameter at a value, this time. May be repeated."),
    ] = None,
    in_json: Annotated[
        bool, typer.Option("--json", help="Errors as JSON, too; suggestions are JSON with and without it.")
    ] = False,
) -> None:
    """Suggest the next experiments, one JSON line each, for a person to run.

    Each stays open until you report its result with `jumbo tell`. Standard output has only these lines.
    """
    with (
        explained("ask", f"Suggestions already made are kept; show them with: jumbo ask {study} --again", in_json),
        usable(study),
    ):
        from jumbo_bo.runner import people
        from jumbo_bo.runner.answers import suggestion_of
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.study.study_file import load

        notes = console(stderr=True)
        with opened_book(load(study), create=not again) as book:
            fixed = people.fixed_of(fix or (), book.file.space)
            found = filter(people.is_open, book.trials()) if again else people.ask(book, n, notes.print, fixed)
            nothing = True
            for trial in found:
                typer.echo(as_json(suggestion_of(trial)))
                nothing = False
            if nothing:
                notes.print(f"No experiment is open. To get one, run: jumbo ask {study}")


def tell(
    study: StudyPath,
    trial: Annotated[
        int | None, typer.Argument(metavar="TRIAL", help="The trial number printed by `jumbo ask`.", show_default=False)
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE", help="The measured value; of several goals each: 0.71 18.2, or NAME=0.71 NAME=18.2."
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The experiment failed and has no result.")] = False,
    measured: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A quantity with a limit in STUDY. May be repeated."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="The trial has a result, and it is wrong: this is the right one.")
    ] = False,
    reason: Annotated[
        str, typer.Option(help="With --replace: what was wrong. With --failed: what happened.", show_default=False)
    ] = "",
    in_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Store the result of an experiment.

    Without TRIAL, results are read from standard input, one JSON object per line: `{"trial": 3, "value": 0.71}`,
    `{"trial": 4, "failed": true}`, `{"trial": 5, "value": 0.7, "measured": {"latency_ms": 18.2}}`, of several goals
    `{"trial": 6, "value": {"loss": 0.7, "time_s": 18.2}}`, or an experiment of your own,
    `{"params": {"lr": 0.01, "units": 64}, "value": 0.8}`.
    All lines are checked before the first one is stored.
    """
    with explained("tell", "Run it again for the rest; results already stored are named.", in_json), usable(study):
        from jumbo_bo.data.corrections import shown
        from jumbo_bo.fronts import front
        from jumbo_bo.runner import answers, people
        from jumbo_bo.runner.book import best, opened_book
        from jumbo_bo.studies import broken
        from jumbo_bo.study.study_file import load

        file = load(study)
        if trial is None:
            if failed or sys.stdin.isatty():
                raise UserError(f"which trial? For example: jumbo tell {study} 3 0.71, or JSON lines on standard input")
            try:
                entries = people.parse(sys.stdin, file.goals)
            except UnicodeDecodeError:
                raise UserError("standard input is not text in UTF-8; send JSON lines") from None
        elif failed == bool(value):
            raise UserError(f"give either a value or --failed, for example: jumbo tell {study} {trial} 0.71")
        elif reason and not (replace or failed):
            raise UserError("--reason is for a result that is replaced; add --replace")
        else:
            told, others = people.results_of(value, file.goals) if value else (None, {})
            entries = [people.Entry("", trial, None, told, people.measured_of(measured or []), others, reason)]
        screen, own = console(), any(e.number is None for e in entries)
        with opened_book(file, create=own and not replace) as book:
            if in_json:
                if replace:
                    said = answers.corrected(book, people.replace(book, entries, reason))
                else:
                    said = answers.told(book, people.tell(book, entries))
                typer.echo(json.dumps(said, indent=1))
                return
            if replace:
                for entry in people.replace(book, entries, reason):
                    screen.print(
                        f"{trials_in_words(entry.trials)}: {shown(entry.was)} replaced by {shown(entry.value)}"
                    )
            else:
                for t in people.tell(book, entries):
                    screen.print(f"trial {t.number}: {'failed' if t.value is None else outcome(t, file.goals)}, stored")
                    if broke := ", ".join(broken(t, book.file.space)):
                        screen.print(f"  It does not meet {broke}: it is learned from, and not counted as the best")
            trials = book.trials()
        _show_best(screen, best(trials, file))
        if file.goals:
            found = front(trials, file.goals, file.space, file.limits)
            screen.print(f"On the front: {trials_in_words([t.number for t in found]) if found else 'no trial yet'}")


def forget(
    study: StudyPath,
    trials: Annotated[list[int], typer.Argument(metavar="TRIAL...", help="Numbers of finished trials.")],
    reason: Annotated[str, typer.Option(help="Why they do not count.", show_default=False)] = "",
    restore: Annotated[bool, typer.Option("--restore", help="They count again.")] = False,
    in_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Mark trials as invalid: everything goes on as if they had never been.

    Nothing is deleted. `jumbo status` and the report list them with the reason, and `--restore` brings them back.
    """
    with explained("forget", in_json=in_json), usable(study):
        from jumbo_bo.runner.answers import corrected
        from jumbo_bo.runner.book import best, opened_book
        from jumbo_bo.study.study_file import load

        if not (reason or restore):
            numbers = " ".join(map(str, trials))
            raise UserError(f"say why, for example: jumbo forget {study} {numbers} --reason 'the pump leaked'")
        with opened_book(load(study), create=False) as book:
            (book.restore if restore else book.forget)(trials, reason)
            if in_json:
                typer.echo(json.dumps(corrected(book, book.corrections().entries[-1:]), indent=1))
                return
            top = best(book.trials(), book.file)
        screen, several = console(), len(set(trials)) > 1
        done = ("count again" if several else "counts again") if restore else "forgotten"
        screen.print(f"{trials_in_words(sorted(set(trials)))}: {done}")
        _show_best(screen, top)


def explain(
    study: StudyPath,
    trial: Annotated[int, typer.Argument(metavar="TRIAL", help="The number of a trial that was suggested.")],
    in_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Say why a trial was suggested: the sentence, what was expected, and good old runs close by."""
    with explained("explain", in_json=in_json), usable(study):
        from jumbo_bo.runner import answers
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.study.study_file import load

        file = load(study)
        with opened_book(file, create=False) as book:
            said = answers.explained(book, trial)
        if in_json:
            typer.echo(json.dumps(said, indent=1))
            return
        screen, reasons = console(), said["reasons"]
        screen.print(f"trial {trial}: {_listed(said['params'], file.space)}")
        screen.print(str(said["why"]))
        if reasons["predicted"]["mean"] is not None and said["value"] is not None:
            low, high = number(reasons["predicted"]["low"]), number(reasons["predicted"]["high"])
            screen.print(f"Expected {low} to {high} (90%), measured {number(said['value'])}")
        for run in reasons["nearest"]:
            screen.print(
                f"  old run of {run['task']}: {number(run['value'])} with {_listed(run['params'], file.space)}"
            )


def _listed(params: Params, space: Space) -> str:
    """The parameters that the space still has with the digits they deserve."""
    from jumbo_bo.space.values import shown, spelled

    known = space.distributions
    return ", ".join(f"{n}={shown(v, known[n]) if n in known else spelled(v)}" for n, v in params.items())


def _show_best(screen: Console, top: FrozenTrial | None) -> None:
    if top is not None and top.value is not None:
        screen.print(f"Best so far: {number(top.value)} in trial {top.number} ({settings(top)})")
