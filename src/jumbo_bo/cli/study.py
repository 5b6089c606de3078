"""`jumbo init` and `jumbo import`: from a table of old runs to a study file, and what is read from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from jumbo_bo.cli.view import console, explained, usable
from jumbo_bo.errors import UserError

if TYPE_CHECKING:
    from jumbo_bo.data.history import History
    from jumbo_bo.study.guess import Guess
    from jumbo_bo.study.study_file import StudyFile

Objective = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column with the result.")]
Task = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that names the problem; without it, each file is one problem."),
]
Minimize = Annotated[bool | None, typer.Option("--minimize/--maximize", help="Is a smaller or a larger result better?")]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A column that is not a parameter, or a pattern such as 'x_*'. May be repeated."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column that is a parameter although it does not look like one."),
]

INIT_EXAMPLES = """Examples:

- `jumbo init runs.csv`

- `jumbo init 'runs/*.csv' --objective valid_loss --task dataset --ignore 'train_*'`

- `jumbo init --output new/study.toml` (no old runs: a template to fill in)
"""
IMPORT_EXAMPLES = """Examples:

- `jumbo import study.toml`

- `jumbo import runs.csv --objective accuracy --maximize`

- `jumbo import more/*.csv --space-from study.toml`

- `jumbo import study.toml --json > import.json`
"""


def init(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILES", help="Tables of old runs: CSV, TSV, Parquet or JSONL.")
    ] = None,
    objective: Objective = None,
    task: Task = None,
    minimize: Minimize = None,
    ignore: Ignore = None,
    keep: Keep = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the guess without a question, as in a script.")
    ] = False,
    output: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Ask nothing, and print one JSON object, for programs.")
    ] = False,
) -> None:
    """Write a study.toml: your parameters and their ranges, guessed from a table of old runs.

    Every guess is shown with its reason. On a terminal you can accept or correct it; the file has comments and is
    yours to change.
    """
    asked = _asked(objective, task, minimize)
    with explained("init", "Nothing was written.", as_json):
        if not files and (objective or task or ignore or keep):
            raise typer.BadParameter(
                "these options describe columns, so pass a table as well",
                param_hint="--objective/--task/--ignore/--keep",
            )
        output = output.expanduser()  # a shell leaves --output=~/study.toml as it is
        if output.exists() and not force:
            raise UserError(f"{output} exists; pass --force to replace it, or --output for another file")
        if not output.absolute().parent.is_dir():
            raise UserError(
                f"the folder {output.absolute().parent} does not exist; create it, or choose another --output"
            )
        from jumbo_bo.cli import dialog
        from jumbo_bo.cli.template import example, from_folder, study_name, study_text
        from jumbo_bo.study.correct import Wishes
        from jumbo_bo.study.study_file import load
        from jumbo_bo.study.table import read_table

        screen, name, guessed = console(), study_name(output, files or ()), None
        if files:
            table = read_table(files)
            wishes = Wishes(**asked, ignore=tuple(ignore or ()), keep=dict.fromkeys(keep or ()))
            if dialog.possible(screen) and not yes and not as_json:
                guessed = dialog.agreed(screen, table, wishes, partial(_show_guess, screen))
                if guessed is None:
                    screen.print("Nothing was written.")
                    raise typer.Exit
            else:
                guessed = wishes.guess(table)
                if not as_json:
                    _show_guess(screen, guessed)
            where = from_folder(files, output.absolute().parent)
            text = study_text(name, guessed.space, guessed.direction, where, guessed.columns, guessed.notes)
        else:
            text = study_text(name, example(), **asked)
        with usable(output):
            output.write_text(text, encoding="utf-8")
        study = load(output)  # what we write, we can read
        if as_json:
            typer.echo(json.dumps({"written": str(output)} | _as_data(study, guessed), indent=1))
            return
        screen.print(f"\nWrote {output}." if files else f"Wrote {output}, an example to fill in.")
        steps = [
            (str(output), "check it and correct any wrong guesses" if files else "write your parameters into [space]")
        ]
        steps += [(f"jumbo import {output}", "shows how the old runs are read")] if files else []
        steps += [(f"jumbo ask {output}", "suggests a trial for you to run")]
        steps += [(f"jumbo run {output}", "runs all trials, once you have added [objective]")]
        _show_steps(screen, steps)


def import_(
    files: Annotated[list[str], typer.Argument(metavar="STUDY.TOML|FILES", help="A study file, or tables.")],
    space_from: Annotated[
        Path | None, typer.Option(metavar="STUDY.TOML", help="Read FILES as this study does, instead of guessing.")
    ] = None,
    objective: Objective = None,
    task: Task = None,
    minimize: Minimize = None,
    ignore: Ignore = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Show what is read from the old runs: rows used, rows dropped and why, columns, and how alike the tasks are.

    Nothing is changed or written; `jumbo run` and `jumbo ask` read the old runs on their own.
    """
    asked = _asked(objective, task, minimize)
    studies = [file for file in files if file.endswith(".toml")]
    if studies and (len(files) > 1 or space_from):
        raise typer.BadParameter("pass one study file, or tables and --space-from STUDY.TOML", param_hint="FILES")
    if studies and (asked or ignore):
        raise typer.BadParameter(
            "the study file already says this, in [[history]]", param_hint="--objective/--task/..."
        )
    with explained("import", in_json=as_json):
        from jumbo_bo.cli.old_runs import data, history_of, show
        from jumbo_bo.study.study_file import load

        screen = console()
        guessed, study = None, None
        rename: Mapping[str, str]
        if studies:
            study = load(files[0])
            history, rename = history_of(study)
        else:
            history, rename, guessed = _read_tables(files, space_from, asked, ignore or [])
        if as_json:
            typer.echo(json.dumps(data(history, rename), indent=2))
            return
        if guessed:
            _show_guess(screen, guessed)
            screen.print()
        show(screen, history, None if guessed else rename)
        _show_steps(screen, _next(files, study, space_from))


def _as_data(study: StudyFile, guessed: Guess | None) -> dict[str, Any]:
    from jumbo_bo.cli.old_runs import parameters

    columns = guessed.columns if guessed else {}
    return {
        "name": study.name,
        "direction": study.direction,
        "parameters": parameters(study.space),
        "objective": columns.get("objective"),
        "task": columns.get("task"),
        "renamed": columns.get("rename", {}),
        "columns": dict(guessed.notes) if guessed else {},
    }


def _asked(objective: str | None, task: str | None, minimize: bool | None) -> dict[str, Any]:
    direction = None if minimize is None else "minimize" if minimize else "maximize"
    asked = {"objective": objective, "task": task, "direction": direction}
    return {name: value for name, value in asked.items() if value is not None}


def _read_tables(
    files: Sequence[str], space_from: Path | None, asked: dict[str, Any], ignore: Sequence[str]
) -> tuple[History, Mapping[str, str], Guess | None]:
    """The history, which column became which parameter, and the guess if there had to be one."""
    from jumbo_bo.data.readers import read_history
    from jumbo_bo.study.guess import guess
    from jumbo_bo.study.study_file import load
    from jumbo_bo.study.table import read_table

    study = load(space_from) if space_from else None
    told = next((source.options for source in study.old_runs if source.kind == "files"), None) if study else None
    if study and told is not None:
        columns = {"direction": study.direction} | {k: v for k, v in told.items() if k != "target"} | asked
        return read_history(files, study.space, **columns), columns.get("rename", {}), None
    table = read_table(files)
    guessed = guess(table.frame, ignore=ignore, rows=table.rows, **asked)
    history = read_history(files, study.space if study else guessed.space, **guessed.columns)
    return history, guessed.rename, None if study else guessed


def _show_guess(screen: Console, guess: Guess, before: Guess | None = None) -> None:
    """All columns, or those that are taken for something else than before."""
    from jumbo_bo.cli.old_runs import plain_table

    table = plain_table("column", "taken as", "because")
    was = [] if before is None else _taken(before)
    for row in _taken(guess):
        if row not in was:
            column, taken, _ = row
            style = "dim" if taken == "-" else "bold" if column in (guess.objective, guess.task) else ""
            table.add_row(*row, style=style)
    screen.print(table)
    if guess.sample and before is None:
        screen.print(guess.sample)


def _taken(guess: Guess) -> list[tuple[str, str, str]]:
    """Of each column what it was taken for and why."""
    from jumbo_bo.study.study_file import span

    rows = []
    for column, why in guess.notes.items():
        name = guess.rename.get(column, column)
        dist = guess.space.distributions.get(name)
        if column in (guess.objective, guess.task):
            role, _, reason = why.removeprefix("the ").partition(", ")
            rows.append((column, role, reason))
        else:
            rows.append((column, "-" if dist is None else span(dist, guess.space.conditions.get(name)), why))
    return rows


def _next(files: Sequence[str], study: StudyFile | None, space_from: Path | None) -> list[tuple[str, str]]:
    if study:
        if study.job.command:
            return [(f"jumbo run {files[0]}", "learn from these runs and start")]
        return [(f"jumbo ask {files[0]}", "learn from these runs and suggest the first trial")]
    if space_from:
        return [(str(space_from), "add these runs: files = ... under a [[history]]")]
    named = " ".join([*files[:3], "..."] if len(files) > 3 else files)
    return [(f"jumbo init {named}", "write this to study.toml")]


def _show_steps(screen: Console, steps: Sequence[tuple[str, str]]) -> None:
    screen.print("\nNext:")
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        screen.print(f"  {command.ljust(width)}  {what}")
