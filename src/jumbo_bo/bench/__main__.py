"""python -m jumbo_bo.bench run | report"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumbo_bo.bench import stats
from jumbo_bo.bench.run import SUITES, Run, parse_method, run_suite, split_methods

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The paper's experiments on real data.",
    epilog="Examples:\n\n- `jumbo bench run fcnet-dt --problems protein --seeds 5`\n\n- `jumbo bench report fcnet-dt`",
)

SuiteName = Annotated[str, typer.Argument(help=f"One of: {', '.join(SUITES)}")]
Out = Annotated[Path, typer.Option(help="Where the runs and the report go; what is there is not run again.")]
Problems = Annotated[str, typer.Option(help="Only these problems, separated by commas.")]


@app.command(epilog="Example: `jumbo bench run fcnet-dt --methods jumbo-joint,gp-ucb --seeds 5 --jobs 2`")
def run(
    suite: SuiteName,
    methods: Annotated[str, typer.Option(help="For example: jumbo-joint,gp-ucb,jumbo:warm=g")] = "jumbo-joint,gp-ucb",
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 0,
    trials: Annotated[int, typer.Option(help="Trials per run.")] = 50,
    problems: Problems = "",
    jobs: Annotated[int, typer.Option(help="Runs at the same time, one thread each.")] = 2,
    data: Annotated[Path | None, typer.Option(help="Folder of the authors' CSV files; also $JUMBO_DATA.")] = None,
    out: Out = Path("benchmarks/results"),
) -> None:
    """Run every problem, method and seed that is not finished yet."""
    names = _problems(suite, problems)
    try:
        chosen = split_methods(methods)
        for method in chosen:
            parse_method(method)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    command = f"python -m jumbo_bo.bench run {suite} --methods {methods} --seeds {seeds} --trials {trials}"
    command += f" --first-seed {first_seed}" * bool(first_seed) + f" --problems {problems}" * bool(problems)
    wanted = range(first_seed, first_seed + seeds)
    runs = [Run(suite, name, method, seed, trials) for seed in wanted for name in names for method in chosen]
    failures = run_suite(runs, out, data, command, jobs)
    if failures:
        typer.echo(
            f"{len(failures)} of {len(runs)} runs failed; their errors are in {out / suite / 'failed'}", err=True
        )
        raise typer.Exit(1)


@app.command(epilog="Example: `jumbo bench report fcnet-dt --methods jumbo-joint,gp-ucb`")
def report(
    suite: SuiteName,
    trials: Annotated[int | None, typer.Option(help="Runs of this length; default: the longest.")] = None,
    methods: Annotated[str, typer.Option(help="Only these methods, in this order.")] = "",
    problems: Problems = "",
    drawn: Annotated[str, typer.Option(help="Methods in the picture; default: the first eight.")] = "",
    out: Out = Path("benchmarks/results"),
) -> None:
    """Write report.md, regret.png and runs.parquet from the finished runs and those of an earlier runs.parquet."""
    names = _problems(suite, problems)
    try:
        listed, picture = (split_methods(text) if text else [] for text in (methods, drawn))
        text = stats.report(out, suite, trials, listed, names, picture)
    except (FileNotFoundError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)


def _problems(suite: str, problems: str) -> list[str]:
    if suite not in SUITES:
        raise typer.BadParameter(f"no suite {suite!r}; choose one of {', '.join(SUITES)}")
    names = [name for name in problems.split(",") if name] or list(SUITES[suite].problems)
    unknown = [name for name in names if name not in SUITES[suite].problems]
    if unknown:
        raise typer.BadParameter(f"{suite} has no problem {', '.join(unknown)}; it has {SUITES[suite].problems}")
    return names


if __name__ == "__main__":
    app()
