"""`jumbo demo`: options and what is shown; the work is in jumbo_bo/bench/demo.py."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from jumbo_bo.cli.view import console, explained, number, usable
from jumbo_bo.extras import command

if TYPE_CHECKING:
    from jumbo_bo.bench.demo import Case, Options, Row, Score


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
) -> None:
    """Tune a neural network using old runs on three other datasets.

    The data are real and were measured in advance, so it takes less than a minute and the true optimum is known.
    Every trial is stored: stop with Ctrl-C whenever you like; the same command resumes.
    """
    if "://" not in storage:
        raise typer.BadParameter(f"{storage!r} is not a database URL; use sqlite:///{storage}", param_hint="--storage")
    from jumbo_bo.bench import demo as job

    kept = f"Finished trials are kept in {storage}; run the same command again to resume."
    with explained("demo", kept), usable(storage):
        _demo(console(), job.Options(target.value, trials, storage, seed))


def _demo(screen: Console, options: Options) -> None:
    from jumbo_bo.bench import demo as job
    from jumbo_bo.learning.cache import default_folder, kept, learned
    from jumbo_bo.learning.features import FeatureNet

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
                known = [f"{name} {r2:.0%}" for name, r2 in past.info["validation_r2"].items() if r2 is not None]
                screen.print(f"Learned in {time.perf_counter() - start:.0f} s.", end=" ")
                screen.print(f"Explained variance on held-out rows: {', '.join(known)}.\n")
            steps = job.search(case.problem, past, job.METHOD, tuple(rows), options.trials, options.seed)
            _watch(screen, rows, (job.store(study, case.problem, *step) for step in steps))
        else:
            screen.print(_trials(rows, screen.width))
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # nobody else needs it

    columns = (TextColumn("the same with plain GP-UCB, without the old runs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        rival = list(progress.track(job.rival(case.problem, len(rows), options.seed), total=len(rows)))
    scores = job.score(case, job.METHOD, rows), job.score(case, job.RIVAL, rival)
    _conclude(screen, case, options, rows, scores)


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


def _conclude(screen: Console, case: Case, options: Options, rows: Sequence[Row], scores: Sequence[Score]) -> None:
    best = min(rows, key=lambda row: row.value).params.items()
    screen.print(f"\nBest configuration: {', '.join(f'{name}={value}' for name, value in best)}\n")
    screen.print(f"Rank of the best so far among {len(case.losses):,}, by number of trials:")
    table = Table("method")
    for name in (*map(str, scores[0].ranks), "true loss"):
        table.add_column(name, justify="right")
    for s in scores:
        table.add_row(s.method, *(f"{rank:,}" for rank in s.ranks.values()), number(s.loss))
    table.add_row("optimum", *("1" for _ in scores[0].ranks), number(case.losses[0]), style="dim")
    screen.print(table)
    screen.print(
        "A trial shows the loss of one training run; the true loss, used for the ranks, is the mean of four. "
        "gp-ucb takes only the scale from the old runs. They are a head start: with enough trials a search without "
        "them catches up.\n\n"
        f"This was one run of each, with seed {options.seed}. For many seeds, on the complete tables (62,208 "
        "configurations):\n"
        f"      {command('bench')}\n      jumbo bench fcnet-dt --problems {options.target}\n\n"
        "Next: the same with your own old runs, see docs/tutorial.md. All trials in the browser:\n"
        f"      pip install optuna-dashboard && optuna-dashboard {options.storage}"
    )
