"""`jumbo find`: options and what is shown; the work is in jumbo_bo/study/find/."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from jumbo_bo.cli.run import StudyPath
from jumbo_bo.cli.view import console, explained, usable
from jumbo_bo.errors import UserError, clip, masked

if TYPE_CHECKING:
    from jumbo_bo.data.task import Task
    from jumbo_bo.study.find.entries import Finding
    from jumbo_bo.study.find.look import Found
    from jumbo_bo.study.study_file import StudyFile

FIND_EXAMPLES = """Examples:

- `jumbo find study.toml ~/experiments`

- `jumbo find study.toml sqlite:///old.db http://127.0.0.1:5000 --write`
"""
QUESTION = "\nAdd to {file}: all, or their numbers (such as 1 3)? Enter adds none.\n> "
WIDE = 36  # of 80 columns, for names and places
LISTED = 100  # of what can be used
SHOWN = 20  # lines of what cannot be used


def find(
    study: StudyPath,
    places: Annotated[
        list[str],
        typer.Argument(metavar="PLACE...", help="Folders, files, Optuna storages, MLflow addresses."),
    ],
    share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="The least share of the parameters that old runs have to have.")
    ] = 0.5,
    objective: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The result, where there is a column or metric of this name.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Add all that can be used to STUDY, without a question.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Look for old runs that fit a study: tables, Optuna studies, MLflow, W&B and Ray folders.

    Of each it shows how many rows and how many of the study's parameters it has, its objective, and how alike its
    results are. What you choose is added to STUDY as [[history]]; nothing else is changed.
    """
    with explained("find", "Nothing was written.", as_json), usable(study):
        from jumbo_bo.cli import dialog
        from jumbo_bo.study.find.entries import append, entries
        from jumbo_bo.study.find.judge import Wanted
        from jumbo_bo.study.find.look import look
        from jumbo_bo.study.study_file import load

        file = load(study)
        screen = console()
        with _shown() as seen:
            tasks, whose = _references(file)
            found = look(file, places, tasks, Wanted(share, objective), seen)
        chosen = found.new if write else []
        if not as_json:
            _show(screen, found, whose)
            if found.new and not write and dialog.possible(screen):
                chosen = _chosen(screen, found.new, study)
        added = entries(chosen, file.folder)
        if added:
            append(file.path, added)
        if as_json:
            said = (
                {"study": str(study), "compared_with": whose} | found.to_json() | {"written": list(map(_masked, added))}
            )
            typer.echo(json.dumps(said, indent=1))
            return
        if added:
            screen.print(f"\nAdded {_counted(len(added), 'entry', 'entries')} to {study}. Next:")
            screen.print(f"  jumbo import {study}  shows how they are read")
        elif found.new:
            screen.print("\nNothing was written. With --write, all that can be used is added.")


def _references(file: StudyFile) -> tuple[Sequence[Task], str]:
    """What found runs are compared with, and in words: trials of the study if there are enough, else its old runs."""
    from jumbo_bo.data.likeness import SHARED
    from jumbo_bo.data.readers import from_trials
    from jumbo_bo.runner.book import opened_book
    from jumbo_bo.study.find.judge import READ_BYTES

    with suppress(UserError):  # not begun yet
        with opened_book(file, create=False) as book:
            trials = [trial for trial in book.trials() if trial.value is not None]
        if len(trials) >= SHARED:
            own = from_trials(trials, file.name, file.space, file.direction)
            return own.tasks, "the finished trials of the study"
    with suppress(UserError, OSError, UnicodeError):
        files = file.old_files()
        if files and sum(path.stat().st_size for path in files) <= READ_BYTES and (old := file.history()):
            return old.tasks, "the old runs in the study file"
    return (), "each other"


@contextmanager
def _shown() -> Iterator[Any]:
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda entries, sources: None
        return
    with screen.status("looking for old runs") as status:
        yield lambda entries, sources: status.update(f"looking for old runs: {sources:,} in {entries:,} files")


def _show(screen: Console, found: Found, whose: str) -> None:
    from jumbo_bo.cli.old_runs import plain_table

    if found.new:
        table = plain_table("", "found", "rows", "parameters", "objective", "alike")
        table.columns[1].min_width = min(WIDE, max(len(_name(each)) for each in found.new))
        for i, each in enumerate(found.new[:LISTED], 1):
            table.add_row(str(i), _name(each), _rows(each), _parameters(each), _objective(each), _likeness(each))
        screen.print(table)
        if len(found.new) > LISTED:
            screen.print(f"... and {len(found.new) - LISTED:,} more; --json lists all")
        if any(each.likeness for each in found.new):
            screen.print(
                f"alike: rank correlation with {whose}; 1: they agree on what is good, 0: unrelated, below 0: they "
                "disagree."
            )
    else:
        screen.print("No old runs that fit were found.")
    unfit = [each for each in found.findings if not each.usable and (each.parameters or each.known)]
    if unfit:
        screen.print("\nNot used:")
    for each in unfit[:SHOWN]:
        screen.print(f"  {_name(each)}: {each.why_not}")
    if len(unfit) > SHOWN:
        screen.print(f"  ... and {len(unfit) - SHOWN:,} more; --json lists all")
    others = len(found.findings) - len(found.new) - len(unfit)
    if others:
        screen.print(f"\n{_counted(others, 'other has', 'others have')} none of the parameters, or no runs.")
    for skipped in found.skipped[:SHOWN]:
        screen.print(f"Skipped {masked(skipped.where)}: {skipped.why}", style="yellow")
    if len(found.skipped) > SHOWN:
        screen.print(f"... and {len(found.skipped) - SHOWN:,} more; --json lists all", style="yellow")


def _chosen(screen: Console, new: Sequence[Finding], study: Path) -> list[Finding]:
    while True:
        try:
            answer = input(QUESTION.format(file=study)).replace(",", " ").strip().lower()
        except EOFError:  # Ctrl-D
            return []
        if answer in ("", "n", "no", "none", "q"):
            return []
        if answer in ("all", "y", "yes"):
            return list(new)
        wanted = answer.split()
        if all(word.isdecimal() and 1 <= int(word) <= len(new) for word in wanted):
            return [new[int(word) - 1] for word in dict.fromkeys(wanted)]
        screen.print(f"Expected all, or numbers from 1 to {len(new)}", style="red")


def _name(each: Finding) -> str:
    where = masked(each.where)
    return where if each.kind == "files" or where.endswith(each.name) else f"{each.name} ({where})"


def _masked(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: masked(value) if isinstance(value, str) else value for key, value in entry.items()}


def _rows(each: Finding) -> str:
    tasks = f", {len(each.tasks)} tasks" if len(each.tasks) > 1 else ""
    if each.used is None:
        return f"{'' if each.exact else 'about '}{each.rows:,}"
    return (f"{each.used:,}" if each.used == each.rows else f"{each.used:,} of {each.rows:,}") + tasks


def _parameters(each: Finding) -> str:
    n = len(each.parameters) + len(each.missing)
    lacks = f", not {clip(', '.join(each.missing))}" if each.missing else ""
    return f"{len(each.parameters)} of {n}{lacks}"


def _objective(each: Finding) -> str:
    return f"{each.direction} {each.objective or ''}".rstrip()


def _likeness(each: Finding) -> str:
    if not each.likeness:
        return "-"
    low, high = f"{min(each.likeness):.2f}", f"{max(each.likeness):.2f}"
    return low if low == high else f"{low} to {high}"


def _counted(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"
