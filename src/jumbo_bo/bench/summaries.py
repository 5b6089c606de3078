"""Several suites together, each with the same weight: `<out>/summary.md`, `summary.png`, `summary.html`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumbo_bo.bench import interactive, markdown, overview, paired, ranking, stats
from jumbo_bo.bench.bootstrap import Interval, Suites
from jumbo_bo.bench.markdown import Record, table
from jumbo_bo.bench.paired import TIE, WORSE, Ratio, Versus
from jumbo_bo.bench.ranking import Ranks
from jumbo_bo.bench.reports import REFERENCE, load
from jumbo_bo.bench.run import Row
from jumbo_bo.bench.stats import COLD, Curves
from jumbo_bo.errors import InputError
from jumbo_bo.methods import DEFAULT

WORST = 5  # problems shown for each method


@dataclass(frozen=True)
class Joined:
    """Problems of all suites, under the name '<suite> <problem>'."""

    curves: Curves
    floors: Mapping[str, float]
    suites: Suites


def summary(
    out: Path, suites: Sequence[str], trials: int | None, methods: Sequence[str], reference: str = DEFAULT
) -> str:
    """Writes the three files; returns the Markdown. Ranks and differences are those on the reference's problems."""
    records = {suite: load(out, suite, trials, methods, (), some=True) for suite in suites}
    joined = join(records)
    everywhere = list(dict.fromkeys(method for _, method in joined.curves))
    wanted = list(methods) or sorted(everywhere)
    if reference not in everywhere:
        raise InputError(f"no finished runs of {reference} in {', '.join(suites)}; choose --reference from {wanted}")
    shared = {key: runs for key, runs in joined.curves.items() if (key[0], reference) in joined.curves}
    marks = stats.marks_of(stats.length_of(shared))
    ranks = ranking.ranks(shared, wanted, marks, joined.suites)
    versus = paired.against(shared, joined.floors, reference, marks, joined.suites)
    order = sorted(wanted, key=lambda m: place(m, ranks, versus))
    ratios = paired.ratios(joined.curves, joined.floors, order)
    interactive.share_plotly(out)
    overview.draw(shared, joined.floors, joined.suites, overview.chosen(order, reference), out / "summary")
    text = markdown.document(
        f"# {', '.join(suites)} together",
        f"{len(joined.suites)} problems in {len(records)} suites. Averages give every suite the same weight, in it"
        " every problem, and in that every seed. Intervals hold 95 % of a bootstrap over the problems of each suite"
        " and their seeds. Lower is better everywhere.",
        "![Average rank, and regret in each suite](summary.png)",
        "[The same figure to look closer](summary.html): open it in a browser.",
        "## Average rank",
        markdown.rank_table(ranks, [m for m in order if m in ranks.table]),
        *_suite_ranks(ranks, order),
        f"## Paired differences to {reference}",
        difference_tables(versus, marks, [m for m in order if m != reference], reference),
        "## Never worse than without old runs",
        ratio_tables(ratios, reference),
        f"## Trials to reach {REFERENCE}",
        reach_table(joined, order),
        "## What is missing",
        missing(records, order),
        "## CPU hours",
        hours_table(records, order),
        "## What made these runs",
        *(f"**{suite}:** {markdown.provenance(record.heads)}" for suite, record in records.items()),
    )
    (out / "summary.md").write_text(text, encoding="utf-8")
    return text


def join(records: Mapping[str, Record]) -> Joined:
    curves = {(f"{s} {p}", m): runs for s, record in records.items() for (p, m), runs in record.curves.items()}
    floors = {f"{s} {p}": floor for s, record in records.items() for p, floor in record.floors.items()}
    return Joined(curves, floors, {f"{s} {p}": s for s, record in records.items() for p in record.floors})


def place(method: str, ranks: Ranks, versus: Mapping[str, Versus]) -> tuple[int, float, str]:
    """By rank; then those without one by their paired difference; then the rest."""
    if method in ranks.table:
        return 0, ranks.table[method][-1].mean, method
    if method in versus:
        return 1, versus[method].differences[-1].mean, method
    return 2, 0.0, method


def _suite_ranks(ranks: Ranks, order: Sequence[str]) -> list[str]:
    """Per suite: over all marks; folded away, at each. Beside many suites there is no room for intervals."""
    if len(ranks.by_suite) < 2:
        return []
    ranked = [m for m in order if m in ranks.table]
    few = len(ranks.by_suite) <= markdown.ABREAST
    last = {m: [cells[m][-1] for cells in ranks.by_suite.values()] for m in ranked}
    rows = ([m, *(markdown.interval(cell) if few else f"{cell.mean:.2f}" for cell in last[m])] for m in ranked)
    parts = [
        f"**{suite}**\n\n{markdown.ranks_of(cells, ranks.marks, ranked)}" for suite, cells in ranks.by_suite.items()
    ]
    note = "The same in each suite, over all marks:"
    return [
        f"{note}\n\n{table(['method', *ranks.by_suite], rows)}",
        markdown.folded("In each suite, at each mark", *parts),
    ]


def difference_tables(
    versus: Mapping[str, Versus], marks: Sequence[int], methods: Sequence[str], reference: str
) -> str:
    note = f"log10 regret minus that of {reference} on the same problems and seeds, at trials"
    note += (
        f" {', '.join(map(str, marks))}, and the log10 area: above 0, {reference} is better; 0.3 is twice its regret."
    )
    note += " Bold: the interval does not hold 0."
    shown = [m for m in methods if m in versus]
    header = ["method", "problems", "pairs", *map(str, marks), "area"]
    rows = ([m, str(versus[m].problems), str(versus[m].pairs), *map(_signed, versus[m].differences)] for m in shown)
    counts = f"Problems on which the method wins / ties / loses against {reference}, by the mean over seeds; a tie is a"
    counts += f" difference of at most {TIE:.3f}, a factor of {WORSE}."
    lines = ([m, *(" / ".join(map(str, cell)) for cell in versus[m].outcomes)] for m in shown)
    without = [m for m in methods if m not in versus]
    parts = [note, table(header, rows), counts, table(["method", *map(str, marks), "area"], lines)]
    if without:
        parts.append(f"Without a problem and seed in common with {reference}: {', '.join(without)}.")
    return "\n\n".join(parts)


def ratio_tables(ratios: Mapping[str, Sequence[Ratio]], reference: str) -> str:
    known = {method: own for method, own in ratios.items() if own}
    if not known:
        return f"None of the cold methods ({', '.join(COLD)}) is here."
    note = f"Regret as a multiple of that of the cold method ({', '.join(COLD)}) that did best on the problem, in the"
    note += (
        " geometric mean over trials and seeds (10 to the difference of the log10 areas). The best one is known only"
    )
    note += f" afterwards. Problems above {WORSE}, and those that are by more than two standard errors:"
    rows = []
    for method, own in known.items():
        values = [ratio.value for ratio in own]
        worse, clearly = sum(ratio.worse for ratio in own), sum(ratio.clearly for ratio in own)
        ends = f"{np.median(values):.2f}", f"{values[0]:.2f} ({own[0].problem})"
        rows.append([method, str(len(own)), str(worse), str(clearly), *ends])
    parts = [note, table(["method", "problems", f"above {WORSE}", "clearly", "median", "worst"], rows)]
    warm = [method for method in known if method not in COLD]
    each = {method: _worst(known[method]) for method in warm}
    if reference in each:
        parts += [
            f"The worst problems of {reference} (in brackets, one standard error up and down):",
            each.pop(reference),
        ]
    parts += [markdown.folded("The worst problems of the others", *(f"**{m}**\n\n{text}" for m, text in each.items()))]
    return "\n\n".join(parts)


def _worst(own: Sequence[Ratio]) -> str:
    rows = []
    for ratio in own[:WORST]:
        ends = [ratio.value * 10 ** (sign * ratio.error) for sign in (-1, 1)]
        around = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if np.isfinite(ratio.error) else ""
        rows.append([ratio.problem, f"{ratio.value:.2f}{around}", ratio.cold, str(ratio.seeds)])
    return table(["problem", "ratio", "best cold method", "seeds"], rows)


def reach_table(joined: Joined, methods: Sequence[str]) -> str:
    reached = stats.trials_to_reach(joined.curves, REFERENCE, joined.suites)
    if not reached.trial:
        return f"{REFERENCE} is not among these methods."
    names = list(dict.fromkeys(joined.suites[problem] for problem, _ in reached.trial))
    parts = {
        suite: stats.trials_to_reach({k: runs for k, runs in joined.curves.items() if joined.suites[k[0]] == suite})
        for suite in names
    }
    note = (
        f"First trial at which the mean regret over seeds is at most {REFERENCE}'s at the last trial, averaged. Never"
    )
    note += " counts as one more than the trials there are, and ≥ says so."
    rows = ([m, *(markdown.reach_mean(part, m) for part in (reached, *parts.values()))] for m in methods)
    return f"{note}\n\n{table(['method', 'all suites', *names], rows)}"


def missing(records: Mapping[str, Record], methods: Sequence[str]) -> str:
    """What each method lacks of the problems, and of the pairs that some method has."""
    lines = []
    for method in methods:
        lacks = [text for suite, record in records.items() if (text := _lacks(suite, record, method))]
        if lacks:
            lines.append(f"- {method}: {'; '.join(lacks)}")
    return "\n".join(lines) or "Nothing: every method has every problem and seed."


def _lacks(suite: str, record: Record, method: str) -> str:
    every = {(p, seed) for (p, _), runs in record.curves.items() for seed in runs}
    own = {(p, seed) for (p, m), runs in record.curves.items() for seed in runs if m == method}
    solved, problems = len({p for p, _ in own}), len({p for p, _ in every})
    if not own:
        return f"no runs in {suite}"
    if own == every:
        return ""
    some = f"{solved} of {problems} problems and " if solved < problems else ""
    return f"in {suite} {some}{len(own)} of {len(every)} pairs"


def hours_table(records: Mapping[str, Record], methods: Sequence[str]) -> str:
    def hours(record: Record, method: str | None) -> float:
        frame = record.frame if method is None else record.frame.filter(record.frame["method"] == method)
        return stats.compute_hours(frame, _of(record.heads, method))

    rows = []
    for method in [*methods, None]:
        own = [hours(record, method) for record in records.values()]
        rows.append([method or "all", *(f"{value:.2f}" for value in [sum(own), *own])])
    unknown = sum("cpu_pretraining" not in head for record in records.values() for head in record.heads)
    note = "CPU hours of all runs: suggestions, results told, and learning from the old runs"
    note += f" (without that of {unknown} runs that did not record it)" if unknown else ""
    return f"{note}.\n\n{table(['method', 'all suites', *records], rows)}"


def _of(heads: Sequence[Row], method: str | None) -> list[Row]:
    return [head for head in heads if method is None or head["method"] == method]


def _signed(cell: Interval) -> str:
    text = f"{cell.mean:+.2f}"
    if np.isnan(cell.low):
        return text
    sure = cell.low > 0 or cell.high < 0
    return (f"**{text}**" if sure else text) + f" [{cell.low:+.2f}, {cell.high:+.2f}]"
