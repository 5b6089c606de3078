"""Theorem 1 measured: does the bound hold, does the net compress the space, and what if the assumptions fail?

(a) `drawn`     functions drawn from the model, see bounds_drawn.py
(b) `fcnet`     the terms of the bound on FCNet with related old runs, see bounds_fcnet.py
(c) both again  where an assumption fails: the old task has nothing to do with the target

`bounds` does all three and writes `<out>/theory/`: report.md, the figures, and every row as Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import track

from jumbo_bo.bench import bounds_drawn, bounds_fcnet, fcnet, markdown, panels
from jumbo_bo.bench.bounds_drawn import CASES, Row
from jumbo_bo.bench.panels import Bars, Line, Panel
from jumbo_bo.bench.problem import Problem

RUNS_PER_SEED = 25  # functions drawn for each seed spent on FCNet
RELATED = ("3 epochs", "other datasets")
TITLES = {
    "drawn": "(a) Functions drawn from the model",
    "compression": "(b) Information gain on FCNet",
    "adversarial": "(c) An old task that has nothing to do with the target",
}


def bounds(out: Path, runs: int = 50, command: str = "", data: Path | None = None) -> str:
    """Does the experiments and writes `<out>/theory/`; returns the Markdown. `runs` functions are drawn per case;
    FCNet is run with one seed for every RUNS_PER_SEED of them. `data`: folder of the authors' CSV files."""
    made = drawn(range(runs))
    gains, trials, skipped = on_fcnet(range(max(1, runs // RUNS_PER_SEED)), data)
    folder = out / "theory"
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("drawn", made), ("gains", gains), ("trials", trials)):
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / f"{name}.parquet")
    figures = {
        "drawn": drawn_figure(made),
        "compression": compression_figure(gains),
        "adversarial": adversarial_figure(made, trials),
    }
    for name, figure in figures.items():
        if figure:
            panels.png(figure, folder / f"{name}.png")
    panels.page(
        "Theorem 1, measured", {TITLES[name]: figure for name, figure in figures.items()}, folder / "theory.html"
    )
    text = report(made, gains, trials, skipped) + markdown.made_by(command) + "\n"
    (folder / "report.md").write_text(text)
    return text


def drawn(runs: Iterable[int]) -> list[Row]:
    jobs = [(law, rule, run) for run in runs for law, rule, _ in CASES]
    watched = track(jobs, "functions drawn from the model", console=Console(stderr=True), transient=True)
    return [row for law, rule, run in watched for row in bounds_drawn.rows_of(law, rule, run)]


def on_fcnet(seeds: Iterable[int], data: Path | None) -> tuple[list[Row], list[Row], list[str]]:
    """Rows of gains, rows of trials, and what could not be done."""
    gains: list[Row] = []
    trials: list[Row] = []
    problems, skipped = _problems(data)
    recipes = bounds_fcnet.recipes()
    jobs = [(source, problem, seed) for seed in seeds for source, problem in problems]
    for source, problem, seed in track(jobs, "FCNet", console=Console(stderr=True), transient=True):
        label: Row = {"source": source, "problem": problem.name, "seed": seed}
        here = bounds_fcnet.unrelated(problem, seed) if source == "unrelated" else problem
        net = None
        for method, recipe in recipes.items():
            if method != "jumbo-printed" and source != "unrelated":
                continue  # (c) only; gp-ucb is blind to the source
            run = bounds_fcnet.trace(here, recipe, seed, net=net if method != "gp-ucb" else None)
            trials += [{**label, "method": method, "unit": problem.unit, **row} for row in run.rows]
            if method == "jumbo-printed":
                net = run.net
                gains += [{**label, **row} for row in bounds_fcnet.gains(here, run)]
    return gains, trials, skipped


def _problems(data: Path | None) -> tuple[list[tuple[str, Problem]], list[str]]:
    tables = [fcnet.leave_one_out(name) for name in fcnet.UNITS]
    found = [("other datasets", problem) for problem in tables] + [("unrelated", problem) for problem in tables]
    try:
        return [("3 epochs", fcnet.temporal(name, data)) for name in fcnet.EPOCH3] + found, []
    except FileNotFoundError as error:
        return found, [f"FCNet after 3 epochs: {error}"]


def drawn_figure(rows: Sequence[Row]) -> list[Panel]:
    frame = pl.DataFrame(rows)
    covered = [(law, rule) for law, rule, proof in CASES if proof and (law, rule) != ("both", "gate")]
    lines: list[Line | Bars] = []
    for i, (law, rule) in enumerate(covered):
        mean = _mean(frame, law=law, rule=rule)
        t = mean["t"].to_list()
        for name, column, dashed in (("R", "cumulative", False), ("bound", "bound", True)):
            lines.append(Line(f"{name}: {law}, {rule}", t, (mean[column] / mean["t"]).to_list(), i, dashed))
    widest = _mean(frame, law="x", rule="gp-ucb")
    lines.append(Line("range of f", widest["t"].to_list(), (widest["trivial_bound"] / widest["t"]).to_list(), 7, True))
    other: list[Line | Bars] = []
    for i, rule in enumerate(("gp-ucb", "partition", "gate")):
        mean = _mean(frame, law="feature", rule=rule)
        other.append(Line(f"R: feature, {rule}", mean["t"].to_list(), mean["average"].to_list(), i))
    return [
        Panel("The proof applies: measured and bound", "T", "per round, R / T", tuple(lines), log="xy"),
        Panel("f is a function of the features", "T", "R / T", tuple(other), log="xy"),
    ]


def compression_figure(rows: Sequence[Row]) -> list[Panel]:
    if not rows:
        return []
    shown = []
    for region in ("best 1 %", "gate"):
        mean = _by_problem(rows, region)
        inside, z, whole = (mean[name].to_list() for name in ("psi_chi_g", "psi_z_g", "psi_chi"))
        bars = (
            Bars("χ_g, cold", inside, 0, 0),
            Bars("Z̄_g, warm", z, 0, 1, base=inside),
            Bars("all of χ, cold", whole, 1, 7),
        )
        shown.append(Panel(f"χ_g = {region}: Ψ of the bound", "", "nats", bars, _names(mean)))
    mean = _by_problem(rows, "best 1 %")
    bars = (
        Bars("χ̄_g, cold-GP", mean["psi_complement_cold_T"].to_list(), 0, 0),
        Bars("Z̄_g, warm-GP", mean["psi_complement_warm_T"].to_list(), 1, 1),
        Bars("Z̄_g, the cold-GP's noise", mean["psi_complement_same_T"].to_list(), 2, 4),
    )
    shown.append(Panel("The complement of the best 1 %: Ψ at T = 50", "", "nats", bars, _names(mean)))
    return shown


def adversarial_figure(made: Sequence[Row], trials: Sequence[Row]) -> list[Panel]:
    frame = pl.DataFrame(made)
    rules = ("gp-ucb", "partition", "gate", "constrained")
    means = [_mean(frame, law="x", rule=rule) for rule in rules]
    shown = []
    for title, column, label in (
        ("Drawn in x-space, unrelated features", "late", f"regret per round, last {bounds_drawn.LATE}"),
        ("The same: the best point so far", "simple", "simple regret"),
    ):
        curves = [
            Line(r, m["t"].to_list(), m[column].to_list(), i) for i, (r, m) in enumerate(zip(rules, means, strict=True))
        ]
        shown.append(Panel(title, "T", label, tuple(curves)))
    if trials:
        table = pl.DataFrame(trials, infer_schema_length=None)
        lines: list[Line | Bars] = []
        wanted = [("unrelated", m) for m in bounds_fcnet.recipes()] + [(source, "jumbo-printed") for source in RELATED]
        for i, (source, method) in enumerate(wanted):
            some = table.filter((pl.col("source") == source) & (pl.col("method") == method))
            mean = some.group_by("trial").agg(pl.col("scaled_regret").mean()).sort("trial")
            if len(mean):
                y = mean["scaled_regret"].cum_sum() / mean["trial"]
                lines.append(
                    Line(f"{method}; {source}", mean["trial"].to_list(), y.to_list(), i, source != "unrelated")
                )
        shown.append(Panel("FCNet, mean over problems", "T", "R / T, standardised", tuple(lines), log="xy"))
    return shown


def report(made: Sequence[Row], gains: Sequence[Row], trials: Sequence[Row], skipped: Sequence[str]) -> str:
    n = len({row["run"] for row in made})
    text = ["# Theorem 1, measured", "", f"## {TITLES['drawn']}", ""]
    text += [f"{n} functions each; δ = {bounds_drawn.DELTA}; R / T and the bounds are means over the functions."]
    first = min(row["run"] for row in made)
    useful = [f"{law} from T = {bounds_drawn.useful_from(law, first) or 'more than 3,000'}" for law in ("x", "both")]
    text += [f"The bound of GP-UCB is below T times the range of f, so says something: {', '.join(useful)}."]
    text += ["", *drawn_table(made), "", "![drawn](drawn.png)", "", f"## {TITLES['compression']}", ""]
    if gains:
        seeds = len({row["seed"] for row in gains})
        over = f"{seeds} seed" if seeds == 1 else f"{seeds} seeds"
        text += [f"`jumbo-printed`, {bounds_fcnet.TRIALS} trials, means over {over}; Ψ in nats.", ""]
        text += [*gains_table(gains), "", "![compression](compression.png)", ""]
    text += [f"- skipped: {reason}" for reason in skipped]
    text += ["", f"## {TITLES['adversarial']}", "", "The rows 'x' of the first table, and FCNet:", ""]
    text += [*trials_table(trials), ""] if trials else []
    text += ["![adversarial](adversarial.png)", "", "[Interactive figures](theory.html)", "", ""]
    return "\n".join(text)


def drawn_table(rows: Sequence[Row]) -> list[str]:
    frame = pl.DataFrame(rows)
    last = int(str(frame["t"].max()))
    marks = [t for t in (10, 50, 100) if t <= last] or [last]
    head = f"R / T at {' / '.join(map(str, marks))}"
    lines = [f"| f | rule | proof applies | R below the bound | R below Σ widths | intervals hold | {head} | last "]
    lines[0] += f"{bounds_drawn.LATE} rounds | optimum found | R | Σ widths | bound | T · range |"
    lines += ["|" + " --- |" * 13]
    for law, rule, proof in CASES:
        mean = {int(row["t"]): row for row in _mean(frame, law=law, rule=rule).iter_rows(named=True)}
        end = mean[last]
        shares = [f"{end[name]:.0%}" for name in ("below", "below_widths", "sure")]
        falling = " / ".join(f"{mean[t]['average']:.2f}" for t in marks)
        sizes = [f"{end[name]:.0f}" for name in ("cumulative", "width_bound", "bound", "trivial_bound")]
        cells = [law, rule, "yes" if proof else "no", *shares, falling, f"{end['late']:.2f}", f"{end['found']:.0%}"]
        lines.append("| " + " | ".join([*cells, *sizes]) + " |")
    return lines


def gains_table(rows: Sequence[Row]) -> list[str]:
    lines = ["| old task | target | χ_g | share of χ | s | Ψ_{T-s}(χ_g) | Ψ_s(Z̄_g) | sum | Ψ_T(χ) | sum / Ψ_T(χ) | "]
    lines[0] += (
        "bound / GP-UCB's | Ψ_T(χ_g) cold | Ψ_T(Z̄_g) warm | at the cold-GP's noise | noise / variance: cold, warm |"
    )
    lines += ["|" + " --- |" * 15]
    for region in ("best 1 %", "gate"):
        for row in _by_problem(rows, region).iter_rows(named=True):
            total = row["psi_chi_g"] + row["psi_z_g"]
            cells = [row["source"], row["problem"], region, f"{row['share_of_chi']:.1%}", f"{row['s']:.0f}"]
            cells += [f"{value:.0f}" for value in (row["psi_chi_g"], row["psi_z_g"], total, row["psi_chi"])]
            cells += [f"{total / row['psi_chi']:.2f}", f"{row['bound_jumbo'] / row['bound_gp_ucb']:.2f}"]
            cells += [f"{row[f'psi_{name}_T']:.0f}" for name in ("chi_g", "complement_warm", "complement_same")]
            cells.append(f"{row['noise_cold']:.1g}, {row['noise_warm']:.1g}")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def trials_table(rows: Sequence[Row]) -> list[str]:
    """Simple regret in the units of the other tables, the rest as shares of the rounds after the first three."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    last = int(str(frame["trial"].max()))
    lines = [f"| old task | target | method | simple regret at {last} (unit) | R / T at 10 / {last} | "]
    lines[0] += "rounds with the optimum inside | f(x*) in the warm interval: theorem's β / β as used |"
    lines += ["|" + " --- |" * 7]
    for (source, problem, method), some in frame.group_by(["source", "problem", "method"], maintain_order=True):
        unit = float(some["unit"][0])
        simple = _average(some.filter(pl.col("trial") == last), "simple") / unit
        average = [f"{_average(some.filter(pl.col('trial') <= t), 'scaled_regret'):.2f}" for t in (min(10, last), last)]
        cells = [str(source), str(problem), str(method), f"{simple:.2f} ({unit:.0e})", " / ".join(average)]
        if method == "gp-ucb":
            cells += ["", ""]
        else:
            used = [f"{_average(some, name):.0%}" for name in ("warm_sure", "warm_sure_as_used")]
            cells += [f"{_average(some, 'optimum_inside'):.0%}", " / ".join(used)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _average(frame: pl.DataFrame, column: str) -> float:
    return float(np.mean(frame[column].drop_nulls().to_numpy()))


def _mean(frame: pl.DataFrame, law: str, rule: str) -> pl.DataFrame:
    """Means over the runs of one case, by round."""
    some = frame.filter((pl.col("law") == law) & (pl.col("rule") == rule)).with_columns(found=pl.col("simple") <= 0)
    return some.group_by("t").agg(pl.exclude("law", "rule", "run").mean()).sort("t")


def _by_problem(rows: Sequence[Row], region: str) -> pl.DataFrame:
    frame = pl.DataFrame(rows).filter(pl.col("region") == region)
    return frame.group_by("source", "problem", maintain_order=True).agg(pl.selectors.numeric().mean())


def _names(frame: pl.DataFrame) -> tuple[str, ...]:
    return tuple(f"{problem} ({source})" for source, problem in zip(frame["source"], frame["problem"], strict=True))
