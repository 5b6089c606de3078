"""jumbo bench SUITE | report | summary"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from jumbo_bo.bench import stats
from jumbo_bo.bench.run import Run, parse_method, run_suite, split_names
from jumbo_bo.bench.suites import SUITES, USUAL

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The paper's experiments on real data: a command for each suite, and one for the tables and figures.",
    epilog="Examples:\n\n- `jumbo bench fcnet-dt --quick`\n\n- `jumbo bench report fcnet-dt`",
)

SuiteName = Annotated[str, typer.Argument(help=f"One of: {', '.join(SUITES)}")]
Methods = Annotated[str, typer.Option(help="For example: jumbo-joint,gp-ucb,jumbo:warm=g")]
Out = Annotated[Path, typer.Option(help="Where the runs and the report go; what is there is not run again.")]
Problems = Annotated[str, typer.Option(help="Only these problems, separated by commas.")]
RESULTS = Path("benchmarks/results")


def _suite_command(suite: str) -> Callable[..., None]:
    def command(
        methods: Methods = USUAL,
        seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 20,
        first_seed: Annotated[int, typer.Option(help="The first of them.", min=0)] = 0,
        trials: Annotated[int, typer.Option(help="Trials per run.", min=1)] = 50,
        problems: Problems = "",
        jobs: Annotated[int, typer.Option(help="Runs at the same time, one thread each.", min=1)] = 2,
        data: Annotated[Path | None, typer.Option(help="Folder of the authors' CSV files; also $JUMBO_DATA.")] = None,
        out: Out = RESULTS,
        quick: Annotated[
            bool, typer.Option("--quick", help="Two seeds, 30 trials, three methods, and the report: a few minutes.")
        ] = False,
    ) -> None:
        if quick:
            methods, seeds, trials, out = "jumbo-joint,gp-ucb,random", 2, 30, out / "quick"
        chosen = _checked_methods(methods)
        names = _problems(suite, problems, data)
        words = f"jumbo bench {suite} --methods {methods} --seeds {seeds} --trials {trials}"
        words += f" --first-seed {first_seed}" * bool(first_seed) + f" --problems {problems}" * bool(problems)
        wanted = range(first_seed, first_seed + seeds)
        runs = [Run(suite, name, method, seed, trials) for seed in wanted for name in names for method in chosen]
        failures = run_suite(runs, out, data, words, jobs)
        if quick:
            typer.echo(stats.report(out, suite, trials, chosen, names))
        if failures:
            typer.echo(
                f"{len(failures)} of {len(runs)} runs failed; their errors are in {out / suite / 'failed'}", err=True
            )
            raise typer.Exit(1)

    return command


for _name, _suite in SUITES.items():
    app.command(
        _name,
        help=f"{_suite.text}\n\nRuns every problem, method and seed that is not finished yet.",
        epilog=f"Example: `jumbo bench {_name} --methods jumbo-joint,gp-ucb --seeds 5 --jobs 2`",
    )(_suite_command(_name))


@app.command(epilog="Example: `jumbo bench report fcnet-dt --methods jumbo-joint,gp-ucb`")
def report(
    suite: SuiteName,
    trials: Annotated[int | None, typer.Option(help="Runs of this length; default: the longest.")] = None,
    methods: Annotated[str, typer.Option(help="Only these methods, in this order.")] = "",
    problems: Problems = "",
    drawn: Annotated[str, typer.Option(help="Methods in the picture; default: the first eight.")] = "",
    out: Out = RESULTS,
) -> None:
    """Write report.md, regret.png and runs.parquet from the finished runs and those of an earlier runs.parquet."""
    names = split_names(problems)
    _check_suite(suite, names)
    try:
        listed, picture = (split_names(text) for text in (methods, drawn))
        text = stats.report(out, suite, trials, listed, names or list(SUITES[suite].problems), picture)
    except (FileNotFoundError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)


def _checked_methods(text: str) -> list[str]:
    try:
        chosen = split_names(text)
        for method in chosen:
            parse_method(method)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return chosen


def _check_suite(suite: str, names: list[str]) -> None:
    if suite not in SUITES:
        raise typer.BadParameter(f"no suite {suite!r}; choose one of {', '.join(SUITES)}")
    unknown = [name for name in names if not SUITES[suite].has(name)]
    if unknown:
        raise typer.BadParameter(f"{suite} has no problem {', '.join(unknown)}; it has {SUITES[suite].problems}")


def _problems(suite: str, text: str, data: Path | None) -> list[str]:
    """The problems asked for; without a wish, those whose data are there."""
    names = split_names(text)
    _check_suite(suite, names)
    missing = SUITES[suite].without_data(data)
    found = names or [name for name in SUITES[suite].problems if name not in missing]
    if not found or set(names) & set(missing):
        raise typer.BadParameter(f"{', '.join(missing)}: the authors' CSV files are not found; pass --data")
    if missing:
        typer.echo(f"left out: {', '.join(missing)} (needs the authors' CSV files, --data)", err=True)
    return found


if __name__ == "__main__":
    app()
