"""The command `jumbo`: reads options, shows results. The work is done elsewhere and imported when it is needed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from jumbo_bo.demo import Case, Options, Row, Score

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Bayesian optimization that learns from your old runs. First time here? Try `jumbo demo`.",
    epilog="Examples:\n\n- `jumbo demo --target naval`\n\n- `jumbo bench run fcnet-dt --problems protein --seeds 5`",
)


def main() -> None:
    app(prog_name="jumbo")


class Target(StrEnum):
    protein = "protein"
    parkinsons = "parkinsons"
    naval = "naval"
    slice = "slice"


def _version(wanted: bool) -> None:
    if wanted:
        import jumbo_bo

        typer.echo(f"jumbo-bo {jumbo_bo.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: `jumbo demo --target naval --trials 20`")
def demo(
    target: Annotated[Target, typer.Option(help="The new problem; the others are the old runs.")] = Target.protein,
    trials: Annotated[int, typer.Option(min=1, help="How many configurations to try.")] = 30,
    storage: Annotated[
        str, typer.Option(help="Database of the trials, as Optuna names it.")
    ] = "sqlite:///jumbo-demo.db",
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another, independent run.")] = 0,
) -> None:
    """Tune a neural network with the help of old runs on three other datasets.

    The data are real and were measured beforehand, so it takes a minute or two and the true optimum is known.
    Every trial is stored: stop with Ctrl-C whenever you like, the same command continues.
    """
    if "://" not in storage:
        raise typer.BadParameter(f"{storage!r} is not a database URL; use sqlite:///{storage}", param_hint="--storage")
    try:
        from jumbo_bo import demo as job

        try:
            _demo(_console(), job.Options(target.value, trials, storage, seed))
        except job.DemoError as error:
            _console(stderr=True).print(f"jumbo demo: {error}", style="red")
            raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _console().print(f"\nStopped. Finished trials are kept in {storage}; run the same command again to continue.")
        raise typer.Exit(130) from None


# --help is answered by the command that everything is forwarded to
@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the paper's experiments on real data and make tables and figures of them.

    Example: `jumbo bench run fcnet-dt --problems protein --seeds 5`
    """
    from jumbo_bo.bench.__main__ import app as experiments

    experiments(args=context.args, prog_name="jumbo bench")


def _demo(console: Console, options: Options) -> None:
    from jumbo_bo import demo as job

    with console.status("reading the tables"):
        case = job.build(options.target)
    with job.open_study(options, case.problem) as study:
        rows = job.stored(study)
        _introduce(console, case, options, len(rows))
        if len(rows) < options.trials:
            net = job.saved_net(case.problem, options)
            if net is None:
                console.print(f"Learning from {case.problem.history.n_rows:,} old rows ...")
                start, net = time.perf_counter(), job.learn(case.problem, options)
                known = [f"{name} {r2:.0%}" for name, r2 in net.info["validation_r2"].items() if r2 is not None]
                console.print(f"Learned in {time.perf_counter() - start:.0f} s.", end=" ")
                console.print(f"Explained variance on rows held back: {', '.join(known)}.\n")
            steps = job.search(case.problem, net, job.METHOD, tuple(rows), options.trials, options.seed)
            _watch(console, rows, (job.store(study, case.problem, *step) for step in steps))
        else:
            console.print(_trials(rows, console.width))
    columns = (TextColumn("the same with plain GP-UCB, without the old runs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        rival = list(progress.track(job.rival(case.problem, len(rows), options.seed), total=len(rows)))
    _conclude(console, case, options, rows, job.compare(case, rows, rival))


def _introduce(console: Console, case: Case, options: Options, done: int) -> None:
    names = case.problem.space.names
    console.print(
        f"New problem: {options.target}. Choose {len(names)} settings of a neural network: {', '.join(names)}. "
        f"There are {len(case.losses):,} configurations; a trial trains one of them and shows its validation loss, "
        f"the lower the better.\n\nOld runs on the other datasets, {case.problem.history.summary()}\n"
    )
    if done >= options.trials:
        console.print(
            f"Already complete: {done} trials are stored in {options.storage}. To go on, ask for more --trials; "
            "to start anew, pass another --seed or --storage, or delete that database.\n"
        )
    elif done:
        console.print(f"Continuing after the {done} of {options.trials} trials stored in {options.storage}.\n")


def _watch(console: Console, rows: list[Row], new: Iterable[Row]) -> None:
    """Appends the new rows as they come: a live table in a terminal, otherwise a line each."""
    if not console.is_terminal:
        for row in new:
            rows.append(row)
            best = min(r.value for r in rows)
            console.print(f"trial {len(rows)}: {_number(row.value)}, best so far {_number(best)}. {row.why}")
        return
    with Live(console=console, auto_refresh=False) as live:
        try:
            for row in new:
                rows.append(row)
                live.update(_trials(rows, console.width, console.height - 3), refresh=True)
        finally:
            live.update(_trials(rows, console.width))


def _trials(rows: Sequence[Row], width: int, last: int | None = None) -> Table:
    """A line per trial, improvements in green; only the `last` ones while all of them would not fit the screen."""
    from jumbo_bo.demo import short

    table = Table(box=None, padding=(0, 2, 0, 0), width=width - 3)  # room for the ^C that a terminal shows
    for name in ("trial", "value", "best so far"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", no_wrap=True, overflow="ellipsis", ratio=1)  # what the numbers leave
    best = float("inf")
    for number, row in enumerate(rows, 1):
        style, best = "green" if row.value < best else "", min(best, row.value)
        if number > len(rows) - (last or len(rows)):
            table.add_row(str(number), _number(row.value), _number(best), short(row.why), style=style)
    return table


def _conclude(console: Console, case: Case, options: Options, rows: Sequence[Row], scores: Sequence[Score]) -> None:
    best = min(rows, key=lambda row: row.value).params.items()
    console.print(f"\nBest configuration: {', '.join(f'{name}={value}' for name, value in best)}\n")
    table = Table("method", title=f"After {len(rows)} trials", title_justify="left")
    for name in ("best value", "true loss", "regret", f"rank of {len(case.losses):,}", "trials to match GP-UCB"):
        table.add_column(name, justify="right")
    for s in scores:
        numbers = _number(s.seen), _number(case.losses[0] + s.regret), f"{s.regret:.3g}", f"{s.rank:,}"
        table.add_row(s.method, *numbers, str(s.matched or "not reached"))
    table.add_row("optimum", "", _number(case.losses[0]), "0", "1", "", style="dim")
    console.print(table)
    console.print(
        "A trial's value comes from one training; the true loss is the mean of four, regret its distance to the "
        f"optimum. One run each, with seed {options.seed}; for many seeds:\n"
        f"      jumbo bench run fcnet-dt --problems {options.target}\n\n"
        "Next: the same with your own old runs, see README.md; all trials in the browser:\n"
        f"      pip install optuna-dashboard && optuna-dashboard {options.storage}"
    )


def _number(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


def _console(stderr: bool = False) -> Console:
    console = Console(stderr=stderr, markup=False, highlight=False)
    console.soft_wrap = not console.is_terminal  # a file or a pipe gets whole lines
    return console
