"""One self-contained HTML page per study: opens offline, from a mail, on a phone, in light and dark mode.

`page` is a function of the trials: the same study gives the same page to the byte. It works for any trials of the
space; what ours keep with a trial (see studies.py) and others do not have is left out, and the page says so.

May import: space, data, learning, jumbo_bo.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from optuna.trial import FrozenTrial
from scipy.stats import binom

import jumbo_bo
from jumbo_bo.data.history import History
from jumbo_bo.explain import without_nan
from jumbo_bo.optimizer import Direction, Optimizer
from jumbo_bo.paths import at_home, whole
from jumbo_bo.report import figures, tables
from jumbo_bo.report.latent import latent_map
from jumbo_bo.report.left import left
from jumbo_bo.report.marks import Figure
from jumbo_bo.report.parallel import MOST, parallel
from jumbo_bo.report.rows import Row, rows
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import TransferReport

# The browser itself refuses to load or send anything.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'"
)
NOTHING: Mapping[int, str] = MappingProxyType({})
UNREAD = "The old runs were not read for this report."
SURPRISING = 0.025  # a coverage with a smaller chance, were the intervals right, is pointed out


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    sentence: str  # what it shows and how to read it, in plain words
    figure: Figure | None = None
    body: str = ""  # HTML below the plot
    gap: str = ""  # why there is nothing to see

    def html(self) -> str:
        plot = f"<p class=gap>{html.escape(self.gap)}</p>" if self.gap else ""
        if self.figure is not None:
            height = f' style="height:{self.figure["height"]}px"' if "height" in self.figure else ""
            label = html.escape(f"{self.title}: {self.sentence}")
            plot = f'<div class="plot" id="plot-{self.id}" role="img" aria-label="{label}"{height}></div>'
        sentence = f"<p>{html.escape(self.sentence)}</p>" if self.sentence else ""
        heading = f'<h2 id="title-{self.id}">{html.escape(self.title)}</h2>'
        inside = f"{heading}{sentence}{plot}{self.body}"
        return f'<section id="{self.id}" aria-labelledby="title-{self.id}">{inside}</section>'


def page(
    name: str,
    space: Space,
    direction: Direction,
    trials: Sequence[FrozenTrial],
    optimizer: Optimizer | None = None,
    transfer: TransferReport | None = None,
    gain: float | None = None,
    left_out: Mapping[int, str] = NOTHING,
) -> str:
    """The whole page. The optimizer gives the old runs and their net for the map, and the chance of a larger gain than
    `gain` (None: see `left`); `transfer(optimizer)` the verdict. Trials that are left out, number -> "forgotten" or
    "earlier" (of an earlier space), are listed, but not drawn."""
    found = rows(trials, space, direction, left_out)
    drawn = [row for row in found if row.number not in left_out]
    sections = [
        _summary(found, direction, transfer, left(drawn, trials, optimizer, gain)),
        _progress(drawn, direction),
        _calibration(drawn),
        _parallel(drawn, space, direction),
        _voices(drawn),
        _trust(drawn),
        _transfer(transfer),
        _map(drawn, optimizer),
        _trials(found, space),
    ]
    plots = {f"plot-{s.id}": s.figure for s in sections if s.figure is not None}
    finished = [t.datetime_complete for t in trials if t.datetime_complete is not None]
    stamp = f"Last trial finished {max(finished):%Y-%m-%d %H:%M}. " if finished else ""
    goal = "lowest" if direction == "minimize" else "highest"
    title = html.escape(name)
    links = "".join(f'<li><a href="#{s.id}">{html.escape(s.title)}</a></li>' for s in sections[1:])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}: study report</title>
<style>
{_resource("page.css")}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="quiet">Looking for the {goal} value over {_times(space.d, "parameter")}. {stamp}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<noscript><p class="gap">The plots need JavaScript: save this file and open it in a browser.</p></noscript>
</header>
<main>
{"".join(f"{s.html()}{chr(10)}" for s in sections)}</main>
<footer>Written by jumbo-bo {html.escape(jumbo_bo.__version__)}. This file is self-contained.</footer>
<script type="application/json" id="figures">{_json(plots)}</script>
<script>{_plotly()}</script>
<script>
{_resource("page.js")}</script>
</body>
</html>
"""


def write(path: str | os.PathLike[str], text: str) -> None:
    """A reader sees the old file or the whole new one, never half of it."""
    with whole(Path(at_home(path))) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def _summary(
    found: Sequence[Row], direction: str, transfer: TransferReport | None, more: tuple[str, str] | None
) -> Section:
    verdict = transfer.verdict if transfer else ""
    return Section("summary", "Summary", "", body=tables.cards(found, direction, _trusted(found), more, verdict))


def _trusted(found: Sequence[Row]) -> tuple[str, str]:
    """How far the old runs are trusted now, and what that means."""
    for row in reversed([row for row in found if row.state not in ("forgotten", "earlier")]):
        if row.reasons is not None and row.reasons.trust is not None:
            return f"{row.reasons.trust:.0%}", f"of the model's predictions, at trial {row.number}"
        if row.reasons is not None and row.reasons.inside_gate is not None:
            return (
                "inside the gate" if row.reasons.inside_gate else "outside the gate",
                f"the suggestion of trial {row.number}",
            )
    return "no number", "no trial has one"


def _progress(found: Sequence[Row], direction: str) -> Section:
    n = sum(row.improved for row in found)
    better = "lower" if direction == "minimize" else "higher"
    sentence = f"The value of every trial and the best one so far; {better} is better. "
    sentence += f"{_times(n, 'trial')} improved on all earlier ones." if n > 1 else ""
    gap = "" if (figure := figures.progress(found)) else "No trial has finished yet."
    return Section("progress", "Best so far", sentence.strip(), figure, gap=gap)


def _calibration(found: Sequence[Row]) -> Section:
    pairs = figures.predicted(found)
    k, n = sum(inside for _, inside in pairs), len(pairs)
    sentence = "What was predicted for each trial before it ran, with its 90% interval, against the result. "
    if n:
        sentence += f"{k} of {_times(n, 'value')} ({k / n:.0%}) fell inside: {_coverage(k, n)}"
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


def _parallel(found: Sequence[Row], space: Space, direction: str) -> Section:
    sentence = (
        "Every finished trial is a path from its value down through its parameters; better trials have bolder paths. "
    )
    sentence += "Where bold paths meet, good trials agree."
    if sum(row.measured for row in found) > 2 * MOST:  # the other half
        sentence += f" At most {MOST} paths are drawn per group."
    gap = "" if (figure := parallel(found, space, direction)) else "No finished trial has parameters of this space."
    return Section("parallel", "Which settings are good", sentence, figure, gap=gap)


def _voices(found: Sequence[Row]) -> Section:
    sentence = "How much better than the average trial each suggestion was expected to be before it ran, "
    sentence += "in standard deviations, by the old runs and by the new trials."
    gap = "" if (figure := figures.voices(found)) else "No trial has such numbers: none was chosen by a model."
    return Section("voices", "Old runs against new trials", sentence, figure, gap=gap)


def _trust(found: Sequence[Row]) -> Section:
    figure = figures.trust(found)
    sentence = (
        "The share of the model's predictions that comes from the old runs; it falls when the new trials disagree."
    )
    if not any(row.reasons and row.reasons.trust is not None for row in found):
        gate = "This method has no share of trust; its gate says where the old runs expect good values."
        sentence = gate if figure else ""
    gap = "" if figure else "The method that suggested these trials gives no such number."
    return Section("trust", "Trust over time", sentence, figure, gap=gap)


def _transfer(transfer: TransferReport | None) -> Section:
    sentence = (
        "Weight: what one unit of the old task's prediction adds to the prediction, negative when it is used upside "
    )
    sentence += (
        "down. Gain: how much more likely the results are with this task than without old runs, in nats per trial."
    )
    if transfer is None:
        return Section("transfer", "What each old task contributes", "", gap=UNREAD)
    tasks = transfer.tasks
    figure = figures.tasks([t.name for t in tasks], [t.weight for t in tasks], [t.gain for t in tasks])
    if figure is None:
        return Section("transfer", "What each old task contributes", "", gap=transfer.verdict)
    return Section("transfer", "What each old task contributes", sentence, figure, tables.transfer_table(tasks))


def _map(found: Sequence[Row], optimizer: Optimizer | None) -> Section:
    title = "Map of old runs and new trials"
    if optimizer is None:
        return Section("map", title, "", gap=UNREAD)
    history = optimizer.history
    if not isinstance(history, History) or optimizer.net is None:
        return Section("map", title, "", gap="There are no old runs to show, or the method does not use them.")
    figure, share = latent_map(optimizer.net, history, found)
    sentence = "Configurations that the net, which learned from the old runs, considers similar are close together. "
    sentence += f"The two directions show {share:.0%} of the differences it sees."
    return Section("map", title, sentence, figure)


def _trials(found: Sequence[Row], space: Space) -> Section:
    names = list(dict.fromkeys([*space.names, *(name for row in found for name in row.params)]))
    if not found:
        return Section("trials", "All trials", "", gap="There is no trial yet.")
    sentence = "Every trial with its reason and the good old runs near it."
    return Section("trials", "All trials", sentence, body=tables.trial_table(found, names))


def _times(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def _resource(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _json(value: Any) -> str:
    """Safe inside a script element; what is not finite becomes null."""
    plain = json.dumps(without_nan(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
