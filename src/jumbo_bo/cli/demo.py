"""`jumbo demo`: options and what is shown; the work is in jumbo_bo/bench/demo.py."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from jumbo_bo.cli.view import console, explained, number, usable
from jumbo_bo.extras import command

if TYPE_CHECKING:
    from jumbo_bo.bench.demo import Case, Options, Row, Score


WITH, WITHOUT = "with old runs", "cold start"


class Target(StrEnum):
    protein = "protein"
    parkinsons = "parkinsons"
    naval = "naval"
    slice = "slice"


def demo(
    target: Annotated[Target, typer.Option(help="The new problem; the others are the old runs.")] = Target.protein,
    trials: Annotated[int, typer.Option(min=1, help="Number of configurations to try.")] = 30,
    storage: Annotated[
        str, typer.Option(help="Database for the trials, as an Optuna storage URL.")
    ] = "sqlite:///jumbo-demo.db",
    seed: Annotated[int, typer.Option(min=0, help="Each seed is an independent run.")] = 0,
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("jumbo-demo.html"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs; the rest goes to standard error.")
    ] = False,
) -> None:
    """Tune a neural network with old runs on three other datasets, and then without them.

    The data are real and were measured in advance, so it takes about a minute and the true optimum is known.
    Every trial is stored: stop with Ctrl-C whenever you like; the same command resumes.
    """
    if "://" not in storage:
        raise typer.BadParameter(f"{storage!r} is not a database URL; use sqlite:///{storage}", param_hint="--storage")
    from jumbo_bo.bench import demo as job

    kept = f"Finished trials are kept in {storage}; run the same command again to resume."
    with explained("demo", kept, as_json), usable(storage):
        options = job.Options(target.value, trials, storage, seed)
        found = _demo(console(stderr=True) if as_json else console(), options, output.expanduser(), asks=not as_json)
        if as_json:
            typer.echo(json.dumps(found, indent=1))


def _demo(screen: Console, options: Options, output: Path, asks: bool) -> dict[str, Any]:
    from jumbo_bo.bench import demo as job
    from jumbo_bo.learning.cache import default_folder, kept, learned
    from jumbo_bo.learning.features import FeatureNet
    from jumbo_bo.wording import learned as learned_words

    with screen.status("reading the tables"):
        case = job.build(options.target)
    with job.open_study(options, case.problem) as study:
        rows = job.stored(study)
        _introduce(screen, case, options, len(rows))
        if len(rows) < options.trials:
            wanted = job.RECIPE, case.problem.history, options.seed, default_folder()
            past = kept(*wanted)
            if past is None:
                screen.print(f"Learning from {case.problem.history.n_rows:,} old rows ...")
                start, past = time.perf_counter(), learned(*wanted)
                assert isinstance(past, FeatureNet)
                how_well = learned_words(past.info["validation_r2"], past.unlearned)
                screen.print(f"Learned in {time.perf_counter() - start:.0f} s. {how_well}\n")
            steps = job.search(case.problem, past, job.METHOD, tuple(rows), options.trials, options.seed)
            _watch(screen, rows, (job.store(study, case.problem, *step) for step in steps))
        else:
            screen.print(_trials(rows, screen.width))
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # nobody else needs it

    columns = (TextColumn("a search without the old runs (gp-ucb)"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        rival = list(progress.track(job.rival(case.problem, len(rows), options.seed), total=len(rows)))
    scores = {WITH: job.score(case, rows), WITHOUT: job.score(case, rival)}
    _conclude(screen, case, options, rows, scores)
    _offer(screen, case, rows, scores, output, asks)
    best = min(rows, key=lambda row: row.value)
    return {
        "target": options.target,
        "best": {"value": best.value, "params": best.params},
        **{name.replace(" ", "_"): asdict(score) for name, score in scores.items()},
        "written": str(output),
    }


def _introduce(screen: Console, case: Case, options: Options, done: int) -> None:
    names = case.problem.space.names
    screen.print(
        f"New problem: {options.target}. Choose {len(names)} settings of a neural network: {', '.join(names)}. "
        f"There are {len(case.losses):,} configurations, all of them trained in advance (Klein and Hutter, 2019): a "
        "trial looks up the validation loss of one; lower is better.\n\n"
        f"Old runs on the other datasets, {case.problem.history.summary()}\n"
    )
    if done >= options.trials:
        screen.print(
            f"Already complete: {done} trials are stored in {options.storage}. To continue, pass more --trials; "
            "to start again, pass another --seed or --storage, or delete that database.\n"
        )
    elif done:
        screen.print(f"Continuing after the {done} of {options.trials} trials stored in {options.storage}.\n")


def _watch(screen: Console, rows: list[Row], new: Iterable[Row]) -> None:
    """Appends the new rows as they come: a live table in a terminal, otherwise a line each."""
    if not screen.is_terminal:
        for row in new:
            rows.append(row)
            best = min(r.value for r in rows)
            screen.print(f"trial {len(rows)}: {number(row.value)}, best so far {number(best)}. {row.why}")
        return
    with Live(console=screen, auto_refresh=False) as live:
        try:
            for row in new:
                rows.append(row)
                live.update(_trials(rows, screen.width, screen.height - 3), refresh=True)
        finally:
            live.update(_trials(rows, screen.width))


def _trials(rows: Sequence[Row], width: int, last: int | None = None) -> Table:
    """A line per trial, improvements in green; only the `last` ones while all of them would not fit the screen."""
    from jumbo_bo.bench.demo import short

    table = Table(box=None, padding=(0, 2, 0, 0), width=width - 3)  # room for the ^C that a terminal shows
    for name in ("trial", "value", "best so far"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", no_wrap=True, overflow="ellipsis", ratio=1)  # what the numbers leave
    best = float("inf")
    for i, row in enumerate(rows, 1):
        style, best = "green" if row.value < best else "", min(best, row.value)
        if i > len(rows) - (last or len(rows)):
            table.add_row(str(i), number(row.value), number(best), short(row.why), style=style)
    return table


def _conclude(screen: Console, case: Case, options: Options, rows: Sequence[Row], scores: Mapping[str, Score]) -> None:
    from jumbo_bo.bench.demo import verdict
    from jumbo_bo.cli.regret import in_terminal

    best = min(rows, key=lambda row: row.value).params
    screen.print(f"\nBest configuration: {', '.join(f'{name}={value}' for name, value in best.items())}\n")
    screen.print(f"How far the best so far is above the lowest possible loss, {number(case.losses[0])}:\n")
    lines = {name: score.regrets for name, score in scores.items()}
    for line in in_terminal(lines, screen.width - 1, encoding=screen.encoding):
        screen.print(line, no_wrap=True)
    head, *cells = _results(scores)
    table = Table(*head[:1], box=None, padding=(0, 3, 0, 0))
    for name in head[1:]:
        table.add_column(name, justify="right")
    for row in cells:
        table.add_row(*row)
    screen.print()
    screen.print(table)
    screen.print(
        f"In brackets the rank among all {len(case.losses):,} configurations; 1 is the best.\n\n"
        f"{verdict(*scores.values())} This was one run of each, with seed {options.seed}; another --seed gives another "
        "picture. The cold start is gp-ucb, a good search without old runs. A trial shows the loss of one training "
        "run, the figures above are means of four.\n\n"
        f"For many seeds, on the complete tables (62,208 configurations):\n"
        f"      {command('bench')}\n      jumbo bench fcnet-dt --problems {options.target}\n\n"
        "Next, with your own old runs:  jumbo init runs.csv  (docs/tutorial.md). All trials in the browser:\n"
        f"      pip install optuna-dashboard && optuna-dashboard {options.storage}"
    )


def _results(scores: Mapping[str, Score]) -> list[list[str]]:
    """Head and rows: regret and rank after some numbers of trials."""
    from jumbo_bo.bench.demo import marks

    shown = marks(min(len(score.regrets) for score in scores.values()))
    rows = [
        [name, *(f"{score.regrets[m - 1]:.2g} ({score.ranks[m - 1]:,})" for m in shown)]
        for name, score in scores.items()
    ]
    return [["", *(f"after {m} trial{'s' if m > 1 else ''}" for m in shown)], *rows]


def _offer(
    screen: Console, case: Case, rows: Sequence[Row], scores: Mapping[str, Score], output: Path, asks: bool
) -> None:
    """Writes the page, and opens it for whoever says so."""
    from jumbo_bo.bench.demo import verdict
    from jumbo_bo.cli.demo_page import page, table
    from jumbo_bo.report import write

    head, *results = _results(scores)
    best = list(accumulate((row.value for row in rows), min))
    names = case.problem.space.names
    trials = [
        [str(i), number(row.value), number(top), ", ".join(f"{n}={row.params[n]}" for n in names), row.why]
        for i, (row, top) in enumerate(zip(rows, best, strict=True), 1)
    ]
    title = f"{len(rows)} trials with and without old runs"
    lines = {name: score.regrets for name, score in scores.items()}
    html = page(
        title,
        verdict(*scores.values()),
        lines,
        table(head, results),
        table(["trial", "value", "best so far", "settings", "why"], trials),
    )
    with usable(output):
        write(output, html)
    screen.print(f"\nAll of this as a page: {output}")
    if asks and screen.is_terminal and sys.stdin.isatty() and typer.confirm("Open it in a browser?"):
        typer.launch(output.absolute().as_uri())
