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
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from optuna.trial import FrozenTrial

import jumbo_bo
from jumbo_bo.data.goals import Goal
from jumbo_bo.data.limits import Limit
from jumbo_bo.explain import without_nan
from jumbo_bo.optimizer import Direction, Optimizer
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.paths import at_home, whole
from jumbo_bo.report import sections
from jumbo_bo.report.goals import goal_sections
from jumbo_bo.report.head import head
from jumbo_bo.report.rows import NOTHING, counted, rows
from jumbo_bo.report.verdict import Stop, verdict
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import TransferReport

# The browser itself refuses to load or send anything.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'"
)
NO_REFERENCE: Mapping[str, float] = MappingProxyType({})


def page(
    name: str,
    space: Space,
    direction: Direction,
    trials: Sequence[FrozenTrial],
    optimizer: Optimizer | None = None,
    transfer: TransferReport | None = None,
    stop: Stop | None = None,
    left_out: Mapping[int, str] = NOTHING,
    limits: Sequence[Limit] = (),
    goals: Sequence[Goal] = (),
    reference: Mapping[str, float] = NO_REFERENCE,
) -> str:
    """The whole page. The optimizer, which was told the trials, gives the old runs and their net for the map, what is
    left to gain, and what the model says of each parameter; `transfer(optimizer)` whether the old runs helped; `stop`
    the gain that matters; `limits` what else was measured; several `goals` and their `reference` make another page, of
    trials as `data.goals.as_one` has them. Trials that are left out, number -> "forgotten" or "earlier"
    (of an earlier space), are listed, but not drawn."""
    found = rows(trials, space, direction, left_out, limits, goals)
    drawn = [row for row in found if row.number not in left_out]
    if goals:
        known = optimizer if isinstance(optimizer, ParetoOptimizer) else None
        shown = goal_sections(found, drawn, space, goals, limits, known, reference)
    else:
        shown = [
            sections.summary_section(found, transfer, verdict(drawn, trials, direction, optimizer, stop)),
            sections.progress_section(drawn, direction),
            *sections.limit_sections(drawn, limits),
            *sections.parameter_sections(drawn, space, direction, optimizer),
            sections.parallel_section(drawn, space, direction),
            sections.transfer_section(transfer),
            sections.trust_section(drawn, transfer),
            sections.voices_section(drawn),
            sections.calibration_section(drawn),
            sections.map_section(drawn, optimizer),
            sections.space_section(drawn, space),
            sections.durations_section(drawn),
            sections.trials_section(found, space, limits),
        ]
    plots = {name: figure for s in shown for name, figure in s.plots.items()}
    finished = [t.datetime_complete for t in trials if t.datetime_complete is not None]
    stamp = f"Last trial finished {max(finished):%Y-%m-%d %H:%M}. " if finished else ""
    goal = f"{'lowest' if direction == 'minimize' else 'highest'} value"
    if goals:
        words = {"minimize": "low", "maximize": "high"}
        goal = html.escape(f"front of {', '.join(f'{words[g.direction]} {g.name}' for g in goals)}")
    where = f" with {html.escape(', '.join(space.constraint_texts))}" if space.constraints else ""
    title = html.escape(name)
    links = "".join(f'<li><a href="#{s.id}">{html.escape(s.title)}</a></li>' for s in shown[1:])
    return f"""{head(f"{name}: study report", POLICY)}
<body>
<header>
<h1>{title}</h1>
<p class="quiet">Looking for the {goal} over {counted(space.d, "parameter")}{where}. {stamp}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<noscript><p class="gap">The plots need JavaScript: save this file and open it in a browser.</p></noscript>
</header>
<main>
{"".join(f"{s.html()}{chr(10)}" for s in shown)}</main>
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


def _resource(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _json(value: Any) -> str:
    """Safe inside a script element; what is not finite becomes null."""
    plain = json.dumps(without_nan(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
