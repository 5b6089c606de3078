"""`jumbo run`, `status`, `dashboard`: options and what is shown; the work is in jumbo_bo/runner/."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from jumbo_bo.cli.interrupts import Interrupts
from jumbo_bo.cli.progress import Events, Progress, outcome, result
from jumbo_bo.cli.view import FAILED, console, duration, explained, settings, usable
from jumbo_bo.errors import UserError
from jumbo_bo.extras import require

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from jumbo_bo.runner.coordinator import Ending
    from jumbo_bo.runner.engines import Engine
    from jumbo_bo.runner.state import Status
    from jumbo_bo.study.study_file import StudyFile

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, for example study.toml.")]


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


def run(
    study: StudyPath,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when the study has this many finished trials.", show_default="as in STUDY"),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Where the command runs.")] = EngineName.local,
    address: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster: `auto` or ray://host:port.", show_default="this machine"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trials at the same time.", show_default="as in STUDY")
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Forget the failed trials and try them again: the command is mended."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event, for programs.")] = False,
) -> None:
    """Evaluate trials with the command in STUDY until the study has enough of them, or [stop] in STUDY ends it.

    The command gets a configuration (as arguments, or as JSON on its standard input) and prints the value as the last
    line: `{"loss": 0.31}`, or just the number. Its output is kept in the folder NAME.runs next to STUDY. Its
    environment has JUMBO_TRIAL, the number of the trial, and JUMBO_FOLDER, a folder for its own files.

    Stop it with Ctrl-C, or even kill -9, whenever you like: no finished trial is lost or evaluated again. The same
    command resumes the study.

    Exit codes: 0 the trials are done, 1 something is wrong and the message says what, 130 stopped.
    """
    kept = f"Finished trials are kept; interrupted trials start again. Resume with: jumbo run {study}"
    with explained("run", kept, as_json), usable(study), Interrupts() as interrupts:
        if address is not None and engine is EngineName.local:
            raise UserError(f"--address {address} is for a Ray cluster; add --engine ray")
        if sys.platform == "win32":
            raise UserError("`jumbo run` needs Linux or macOS; use WSL, or `jumbo ask` and `jumbo tell`")
        from jumbo_bo.runner.run import run as evaluate
        from jumbo_bo.study.study_file import load

        file = load(study)
        file = replace(file, job=replace(file.job, workers=workers or file.job.workers))
        limit = trials or file.trials
        if as_json:
            events = Events(interrupts, file.goals)
            ending = evaluate(file, limit, events, _engine(engine, address), retry_failed)
            events.ended(ending)
            if ending.best is None and not ending.front:
                raise typer.Exit(FAILED)
            return
        with Progress(console(), interrupts, file.job.workers, file.limits, file.goals) as progress:
            ending = evaluate(file, limit, progress, _engine(engine, address), retry_failed)
        _conclude(console(), file, ending, limit)


def status(
    study: StudyPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Show the progress of a study, even while it runs: the best trial, what is running or open, the last results."""
    with explained("status", in_json=as_json), usable(study):
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.runner.state import status as look
        from jumbo_bo.study.study_file import load

        file = load(study)
        with opened_book(file, create=False) as book:
            found = look(file, book.kept(), book.corrections())
        if as_json:
            typer.echo(json.dumps(found.to_json(), indent=1))
        else:
            _show(console(), found)


def dashboard(
    study: StudyPath,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 8080,
) -> None:
    """Show the study in the browser with optuna-dashboard. Only this machine can reach it; Ctrl-C stops it."""
    with explained("dashboard"), usable(study):
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.study.study_file import load

        require("this", "optuna_dashboard")
        run_server = import_module("optuna_dashboard").run_server
        with opened_book(load(study), create=False) as book:
            console().print(f"The study is at http://127.0.0.1:{port}/dashboard (Ctrl-C to stop)")
            try:
                run_server(book.storage, host="127.0.0.1", port=port)
            except OSError as error:
                raise UserError(
                    f"port {port} cannot be used ({error.strerror}); try --port {port % 65535 + 1}"
                ) from None


# How it looks


def _conclude(screen: Console, file: StudyFile, ending: Ending, limit: int) -> None:
    from jumbo_bo.space.values import shown
    from jumbo_bo.wording import in_words

    if ending.reason == "exhausted":
        screen.print(f"\nAll {file.n_configurations:,} configurations of the space have been tried.")
    elif ending.reason == "stopped" and file.stop is not None:
        chance, more = in_words(ending.chance), f" by more than {file.stop.gain:g}" if file.stop.gain else ""
        screen.print(f"\nStopped: the chance that any configuration improves{more} is {chance}.")
    elif ending.reason == "elsewhere":
        screen.print(
            f"\n{ending.finished} of {limit} trials are finished; the others are running on other machines (jumbo "
            f"status {file.path} lists them). To give up one that is lost: jumbo tell {file.path} NUMBER --failed"
        )
    else:
        screen.print(f"\nDone: {ending.finished} trials are finished.")
    if ending.front:
        _show_front(screen, file, ending.front)
        return _show_steps(screen, file, ending, limit)
    if ending.best is None and ending.values:
        screen.print(f"No trial meets the limits: {', '.join(map(str, file.limits))}", style="red")
        raise typer.Exit(FAILED)
    if ending.best is None or ending.best.value is None:
        fix = f". Mend the command, then: jumbo run {file.path} --retry-failed" if ending.reason == "exhausted" else ""
        screen.print(f"None of them has a value; the reasons are in {file.runs}{fix}", style="red")
        raise typer.Exit(FAILED)
    screen.print(f"Best: {result(ending.best, file.limits)} in trial {ending.best.number}")
    for name, setting in ending.best.params.items():
        screen.print(f"  {name} = {shown(setting, ending.best.distributions[name])}")
    _show_steps(screen, file, ending, limit)


def _show_front(screen: Console, file: StudyFile, front: Sequence[FrozenTrial]) -> None:
    goals = ", ".join(f"{goal.direction} {goal.name}" for goal in file.goals)
    screen.print(f"\nFront ({goals}), {len(front)} {'trial' if len(front) == 1 else 'trials'} that no other one beats:")
    for t in front:
        screen.print(f"  trial {t.number}: {outcome(t, file.goals, file.limits)}: {settings(t)}", style="green")


def _show_steps(screen: Console, file: StudyFile, ending: Ending, limit: int) -> None:
    steps = {
        f"jumbo report {file.path}": "the full report",
        f"jumbo dashboard {file.path}": "all trials in the browser",
    }
    if ending.reason == "budget":
        steps[f"jumbo run {file.path} --trials {2 * max(limit, ending.finished)}"] = "continue with more trials"
    screen.print("\nNext:")
    for command, what in steps.items():
        screen.print(f"  {command:<{max(map(len, steps))}}  {what}")


def _show(screen: Console, found: Status) -> None:
    from jumbo_bo.data.storage import shown
    from jumbo_bo.wording import sentence

    file = found.file
    words = {"fail": "failed" if found.finished else "failed, not counted"}
    counts = ", ".join(f"{n} {words.get(state, state)}" for state, n in found.counts.items()) or "no trial yet"
    screen.print(f"{file.name}: {found.finished} of {file.trials} trials finished ({counts})")
    screen.print(f"stored in {shown(file.address)}")
    if found.kept.changes:
        screen.print(str(found.kept))
    if found.best is not None and found.best.value is not None:
        screen.print(
            f"\nBest ({file.direction}): {result(found.best, file.limits)} in trial {found.best.number}", style="green"
        )
        screen.print(f"  {settings(found.best)}")
    elif found.front:
        _show_front(screen, file, found.front)
        if found.gained is not None:
            screen.print(f"The last {len(found.last)} results added {found.gained:.0%} of the volume that it dominates")
    elif file.limits and any(t.value is not None for t in found.last):
        screen.print(f"\nNo trial meets the limits yet: {', '.join(map(str, file.limits))}")
    if found.remaining is not None:
        left = found.remaining
        screen.print(f"{sentence(left.gain, left.chance)} (when trial {left.trial} was started)")
    groups = {
        "Running": found.running,
        f"Interrupted; resume with `jumbo run {file.path}`": found.interrupted,
        "Open, waiting for a result": found.open,
    }
    for title, trials in groups.items():
        if trials:
            screen.print(f"\n{title}:")
        for t in trials:
            screen.print(f"  trial {t.number}, {_since(t)}: {settings(t)}")
    if found.corrections:
        screen.print("\nCorrected:")
    for entry in found.corrections:
        screen.print(f"  {trials_in_words(entry.trials)}: {entry}")
    values = [t.value for t in (found.best, *found.last) if t is not None and t.value is not None]
    if found.last:
        screen.print("\nLast results:")
    for t in found.last:
        if t.value is None:
            screen.print(f"  trial {t.number}: {t.state.name.lower()}. {t.user_attrs.get('error', '')}", style="yellow")
        else:
            shown_as = outcome(t, file.goals, file.limits) if file.goals else result(t, file.limits, *values)
            screen.print(f"  trial {t.number}: {shown_as}, {settings(t)}")


def _since(trial: FrozenTrial) -> str:
    if trial.datetime_start is None:
        return "not started"
    return f"for {duration(time.time() - trial.datetime_start.timestamp())}"


def trials_in_words(numbers: Sequence[int]) -> str:
    return f"{'trial' if len(numbers) == 1 else 'trials'} {', '.join(map(str, numbers))}"


def _engine(name: EngineName, address: str | None) -> Engine | None:
    from jumbo_bo.runner.engines import OnRay

    return OnRay(address) if name is EngineName.ray else None
