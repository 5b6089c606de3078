"""`jumbo mcp`: ask, tell, status, explain and import as tools of the Model Context Protocol, for agents.

The tools do what the commands do, return what those print with --json, and fail with the same line. Standard output
belongs to the protocol: the SDK keeps it for itself and turns whatever else is printed to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumbo_bo.cli.view import console, explained, usable
from jumbo_bo.errors import UserError
from jumbo_bo.extras import require

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from jumbo_bo.runner.book import Book

STUDY = "study.toml"
INSTRUCTIONS = """Choose the settings of the next experiment from what is known: old runs of related problems, and the
results so far. `ask` suggests settings; run the experiment; `tell` its result; repeat. `status` shows how far the study
is, `explain` why a trial was suggested, `import` what is read from the old runs. `study` is the path of a study file
below the folder that is served."""


def mcp(
    place: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder with the study files that may be used, or one of them.")
    ] = Path("."),
) -> None:
    """Serve ask, tell, status, explain and import to agents over the Model Context Protocol (stdio).

    Start it from your client, as its configuration says. It sees no study file outside of FOLDER and runs no commands.
    """
    with explained("mcp"), usable(place):
        require("jumbo mcp", "mcp")
        if not place.exists():
            raise UserError(f"{place} does not exist; name the folder with your study files")
        served = server(place)
        if sys.stdin.isatty():
            console(stderr=True).print(
                "Waiting for messages of a client on standard input; see docs/agents.md. Ctrl-C ends it."
            )
        served.run("stdio")


def study_in(place: Path, name: str) -> Path:
    """The study file of this name in the place that is served. Links that lead out of it are not followed."""
    root = Path(os.path.realpath(place))
    if root.is_file():
        if Path(os.path.realpath(root.parent / name)) != root:
            raise UserError(f"{name!r} is not the study file that is served, which is {root.name!r}")
        return place
    found = Path(os.path.realpath(root / name))
    if not found.is_relative_to(root):
        raise UserError(f"{name!r} is outside of the folder that is served; name a study file in it")
    if found.suffix.lower() != ".toml":
        raise UserError(f"{name!r} is not a study file; name one that ends in .toml")
    return place / name


def server(place: Path) -> MCPServer:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    import jumbo_bo

    served = MCPServer("jumbo", version=jumbo_bo.__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    default = place.name if place.is_file() else STUDY
    one_at_a_time = Lock()

    @contextmanager
    def told(study: str) -> Iterator[Path]:
        """The path of a study file. A mistake of the caller is a tool error with the line that the command shows."""
        try:
            with one_at_a_time, usable(study):
                yield study_in(place, study)
        except UserError as error:
            raise ToolError(str(error)) from None

    @contextmanager
    def book_of(study: str, create: bool) -> Iterator[Book]:
        from jumbo_bo.runner.book import opened_book
        from jumbo_bo.study.study_file import load

        with told(study) as path, opened_book(load(path), create=create) as book:
            yield book

    @served.tool()
    def ask(study: str = default, n: int = 1, again: bool = False, fix: dict[str, Any] | None = None) -> dict[str, Any]:
        """Suggest the settings of the next experiments. Each stays open until its result is told.

        n: how many. again: show those that are open already instead. fix: settings to hold at a value, this time.
        """
        from jumbo_bo.runner import people
        from jumbo_bo.runner.answers import suggestion_of

        notes: list[str] = []
        with book_of(study, create=not again) as book:
            if n < 1:
                raise UserError(f"n is {n}, expected at least 1")
            fixed = people.fixed_of([f"{name}={value}" for name, value in (fix or {}).items()], book.file.space)
            found = filter(people.is_open, book.trials()) if again else people.ask(book, n, notes.append, fixed)
            return {"suggestions": [suggestion_of(trial) for trial in found], "notes": notes}

    @served.tool()
    def tell(
        results: list[dict[str, Any]], study: str = default, replace: bool = False, reason: str = ""
    ) -> dict[str, Any]:
        """Store results of experiments. All are checked before the first one is stored.

        results: one object each, {"trial": 3, "value": 0.71}, {"trial": 4, "failed": true}, with "measured": {...} for
        quantities that have limits, "value": {"loss": 0.7, "time_s": 18.2} where there are several goals, or
        {"params": {...}, "value": 0.8} for an experiment that was not asked for.
        replace: these trials have a result, and it is wrong; reason: what was wrong with it.
        """
        from jumbo_bo.runner import answers, people

        own = not replace and any(result.get("trial") is None for result in results)
        with book_of(study, create=own) as book:
            entries = people.parse((json.dumps(result) for result in results), book.file.goals)
            if not entries:
                raise UserError(f"there are no results; for example [{people.EXAMPLE}]")
            if replace:
                return answers.corrected(book, people.replace(book, entries, reason))
            return answers.told(book, people.tell(book, entries))

    @served.tool()
    def status(study: str = default) -> dict[str, Any]:
        """How far the study is: the best trial or the front, what is running or open, the last results."""
        from jumbo_bo.runner.state import status as look

        with book_of(study, create=False) as book:
            return look(book.file, book.kept(), book.corrections()).to_json()

    @served.tool()
    def explain(trial: int, study: str = default) -> dict[str, Any]:
        """Why a trial was suggested: the sentence, and the numbers behind it."""
        from jumbo_bo.runner.answers import explained

        with book_of(study, create=False) as book:
            return explained(book, trial)

    @served.tool(name="import")
    def import_(study: str = default) -> dict[str, Any]:
        """What is read from the old runs: rows used, rows dropped and why, and how alike the tasks are."""
        from jumbo_bo.cli.old_runs import of_study
        from jumbo_bo.study.study_file import load

        with told(study) as path:
            return of_study(load(path))

    return served
