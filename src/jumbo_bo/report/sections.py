"""The sections of a report: what each says about a study, and what is drawn. A gap says why there is nothing to see."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binom

from jumbo_bo.data.goals import Goal
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit
from jumbo_bo.influence import FEWEST, importance, slices
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report import along, figures, limited, tables
from jumbo_bo.report.latent import latent_map
from jumbo_bo.report.marks import Figure
from jumbo_bo.report.parallel import MOST, parallel
from jumbo_bo.report.rows import Row, best, counted, spent
from jumbo_bo.report.verdict import Verdict
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import TransferReport

UNREAD = "The old runs were not read for this report."
SURPRISING = 0.025  # a coverage with a smaller chance, were the intervals right, is pointed out


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    sentence: str  # what it shows and how to read it, in plain words
    figure: Figure | None = None
    body: str = ""  # HTML below the plot
    several: tuple[Figure, ...] = ()  # plots side by side
    gap: str = ""  # why there is nothing to see

    @property
    def plots(self) -> dict[str, Figure]:  # by the ids of their elements
        found = {} if self.figure is None else {f"plot-{self.id}": self.figure}
        return found | {f"plot-{self.id}-{k}": figure for k, figure in enumerate(self.several)}

    def html(self) -> str:
        plot = f"<p class=gap>{html.escape(self.gap)}</p>" if self.gap else ""
        drawn = "".join(self._plot(name, figure) for name, figure in self.plots.items())
        plot += f"<div class=plots>{drawn}</div>" if self.several else drawn
        sentence = f"<p>{html.escape(self.sentence)}</p>" if self.sentence else ""
        heading = f'<h2 id="title-{self.id}">{html.escape(self.title)}</h2>'
        inside = f"{heading}{sentence}{plot}{self.body}"
        return f'<section id="{self.id}" aria-labelledby="title-{self.id}">{inside}</section>'

    def _plot(self, name: str, figure: Figure) -> str:
        height = f' style="height:{figure["height"]}px"' if "height" in figure else ""
        label = html.escape(f"{self.title}: {self.sentence}")
        return f'<div class="plot" id="{name}" role="img" aria-label="{label}"{height}></div>'


def summary_section(found: Sequence[Row], transfer: TransferReport | None, said: Verdict) -> Section:
    helped = transfer.verdict if transfer else ""
    body = tables.lead(said.sentences) + tables.cards(found, _trusted(found, transfer), said, helped)
    return Section("summary", "Summary", "", body=body)


def _trusted(found: Sequence[Row], transfer: TransferReport | None) -> tuple[str, str]:
    """How far the old runs are trusted: now, or when the last trial was suggested."""
    if transfer is not None and math.isfinite(transfer.trust):
        return f"{transfer.trust:.0%}", "of the model's predictions, now"
    for row in reversed([row for row in found if row.state not in ("forgotten", "earlier")]):
        if row.reasons is not None and row.reasons.trust is not None:
            return f"{row.reasons.trust:.0%}", f"of the model's predictions, at trial {row.number}"
        if row.reasons is not None and row.reasons.inside_gate is not None:
            return (
                "inside the gate" if row.reasons.inside_gate else "outside the gate",
                f"the suggestion of trial {row.number}",
            )
    return "no number", "no trial has one"


def progress_section(found: Sequence[Row], direction: str) -> Section:
    n = sum(row.improved for row in found)
    better = "lower" if direction == "minimize" else "higher"
    sentence = f"The value of every trial and the best one so far; {better} is better. "
    sentence += f"{counted(n, 'trial')} improved on all earlier ones." if n > 1 else ""
    gap = "" if (figure := figures.progress(found, direction)) else "No trial has finished yet."
    return Section("progress", "Best so far", sentence.strip(), figure, gap=gap)


def parameter_sections(
    found: Sequence[Row], space: Space, direction: str, optimizer: Optimizer | None
) -> list[Section]:
    titles = ("importance", "What matters"), ("slices", "One parameter at a time")
    top = best(found)
    mattering = importance(optimizer) if optimizer and top else []
    if optimizer is None or top is None or not mattering:
        few = f"There is no model of {FEWEST} trials with a value, or the method has none."
        gap = UNREAD if optimizer is None else few
        return [Section(*title, "", gap=gap) for title in titles]
    sentence = (
        "How much of the differences between configurations each parameter has a hand in, alone or together with "
    )
    sentence += "others, over the whole search space. The lines are 90% intervals: the fewer trials, the longer."
    bars = Section(*titles[0], sentence, along.importance(mattering), tables.importance_table(mattering))
    names = [i.name for i in mattering if i.name in top.params][: along.SLICES]
    cut = slices(optimizer, {name: top.params[name] for name in space.names if name in top.params}, names)
    sentence = "What is expected when one parameter changes and the others stay as in the best trial (diamond), with "
    sentence += "the 90% interval; the circles are the other trials, which differ in the other parameters, too. "
    if any(some.old.size for some in cut):
        sentence += "Dashed: what the old tasks expect on average, on the scale of the new trials. "
    if space.d > len(names):
        sentence += f"The {len(names)} most important of {space.d} parameters."
    drawn = tuple(along.along(some, space, found, top, direction) for some in cut)
    return [bars, Section(*titles[1], sentence.strip(), several=drawn)]


def calibration_section(found: Sequence[Row]) -> Section:
    pairs = figures.predicted(found)
    k, n = sum(inside for _, inside in pairs), len(pairs)
    sentence = "What was predicted for each trial before it ran, with its 90% interval, against the result. "
    if n:
        sentence += f"{k} of {counted(n, 'value')} ({k / n:.0%}) fell inside: {_coverage(k, n)}"
    gap = (
        ""
        if n
        else "No finished trial has a prediction: the first trials of a study and trials from other samplers have none."
    )
    return Section("calibration", "Predicted against observed", sentence.strip(), figures.calibration(found), gap=gap)


def _coverage(k: int, n: int) -> str:
    """In words, whether k of n is what a right 90% interval would give."""
    if binom.cdf(k, n, 0.9) < SURPRISING:
        return "fewer than nine in ten: the model is too sure of itself."
    if binom.sf(k - 1, n, 0.9) < SURPRISING:
        return "more than nine in ten: the model is more careful than it needs to be."
    return "in line with the expected nine in ten." if n >= 10 else "too few trials to judge."


def parallel_section(found: Sequence[Row], space: Space, direction: str) -> Section:
    sentence = (
        "Every finished trial is a path from its value down through its parameters; better trials have bolder paths. "
    )
    sentence += "Where bold paths meet, good trials agree."
    if sum(row.measured for row in found) > 2 * MOST:  # the other half
        sentence += f" At most {MOST} paths are drawn per group."
    gap = "" if (figure := parallel(found, space, direction)) else "No finished trial has parameters of this space."
    return Section("parallel", "Which settings are good", sentence, figure, gap=gap)


def voices_section(found: Sequence[Row]) -> Section:
    sentence = "How much better than the average trial each suggestion was expected to be before it ran, "
    sentence += "in standard deviations, by the old runs and by the new trials."
    gap = "" if (figure := figures.voices(found)) else "No trial has such numbers: none was chosen by a model."
    return Section("voices", "Old runs against new trials", sentence, figure, gap=gap)


def trust_section(found: Sequence[Row], transfer: TransferReport | None) -> Section:
    figure = figures.trust(found, transfer.trust if transfer else math.nan)
    sentence = (
        "The share of the model's predictions that comes from the old runs, when each trial was suggested; it falls "
        "when the new trials disagree."
    )
    if not any(row.reasons and row.reasons.trust is not None for row in found):
        gate = "This method has no share of trust; its gate says where the old runs expect good values."
        sentence = gate if figure else ""
    gap = "" if figure else "The method that suggested these trials gives no such number."
    return Section("trust", "Trust over time", sentence, figure, gap=gap)


def transfer_section(transfer: TransferReport | None) -> Section:
    sentence = "Weight: how much of the old task is in the predictions; below zero, what was good there is bad here. "
    sentence += (
        "Error: what the old task does to the error of predictions; -20% means that they are off by a fifth less."
    )
    if transfer is None:
        return Section("transfer", "What each old task contributes", "", gap=UNREAD)
    tasks = transfer.tasks
    figure = figures.tasks([t.name for t in tasks], [t.weight for t in tasks], [t.error for t in tasks])
    if figure is None:
        return Section("transfer", "What each old task contributes", "", gap=transfer.verdict)
    return Section("transfer", "What each old task contributes", sentence, figure, tables.transfer_table(tasks))


def map_section(found: Sequence[Row], optimizer: Optimizer | None) -> Section:
    title = "Map of old runs and new trials"
    if optimizer is None:
        return Section("map", title, "", gap=UNREAD)
    history = optimizer.history
    if not isinstance(history, History) or optimizer.net is None:
        return Section("map", title, "", gap="There are no old runs to show, or the method does not use them.")
    figure, share = latent_map(optimizer.net, history, found)
    sentence = "Configurations that the net, which learned from the old runs, considers similar are close together. "
    sentence += f"The map shows {share:.0%} of the differences it sees. Left and right, up and down mean nothing else."
    return Section("map", title, sentence, figure)


def space_section(found: Sequence[Row], space: Space) -> Section:
    return Section("space", "Search space", "", body=tables.space_table(space, best(found)))


def durations_section(found: Sequence[Row]) -> Section:
    times = sorted(row.seconds for row in found if math.isfinite(row.seconds))
    if not times:
        return Section("durations", "Durations", "", gap="It is not known how long the trials took.")
    middle = times[len(times) // 2]
    sentence = f"{counted(len(times), 'finished trial')} took {spent(sum(times))} in all"
    sentence += (
        f", half of them at most {spent(middle)} each, the longest {spent(times[-1])}." if len(times) > 1 else "."
    )
    return Section("durations", "Durations", sentence, figures.durations(found))


def limit_sections(found: Sequence[Row], limits: Sequence[Limit]) -> list[Section]:
    """For each quantity that has a limit."""
    made = []
    for i, limit in enumerate(limits):
        figure = limited.quantity(found, limit)
        gap = "" if figure else f"No trial has measured {limit.name} yet."
        made.append(
            Section(f"limit-{i}", str(limit), limited.sentence(found, limit) if figure else "", figure, gap=gap)
        )
    return made


def trials_section(
    found: Sequence[Row], space: Space, limits: Sequence[Limit] = (), goals: Sequence[Goal] = ()
) -> Section:
    names = list(dict.fromkeys([*space.names, *(name for row in found for name in row.params)]))
    if not found:
        return Section("trials", "All trials", "", gap="There is no trial yet.")
    sentence = "Every trial with its reason and the good old runs near it."
    return Section("trials", "All trials", sentence, body=tables.trial_table(found, names, limits, goals))
