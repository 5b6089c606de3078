"""The parts of a report that are text: cards, the transfer table, the table of trials. Everything is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from jumbo_bo.data.summary import SHOWN
from jumbo_bo.neighbours import OldRun
from jumbo_bo.report.rows import Row, best, number, text
from jumbo_bo.transfer import TaskTransfer


def e(value: Any) -> str:
    return html.escape(str(value))


def cards(
    rows: Sequence[Row], direction: str, trust: tuple[str, str], left: tuple[str, str] | None, verdict: str
) -> str:
    top = best(rows)
    goal = "lowest" if direction == "minimize" else "highest"
    first = (
        ("Best value", number(top.value), f"trial {top.number}; looking for the {goal}")
        if top
        else ("Best value", "none yet", f"looking for the {goal}")
    )
    states = ("done", "failed", "pruned", "running", "waiting", "forgotten", "earlier")
    counts = {state: sum(row.state == state for row in rows) for state in states}
    others = ", ".join(f"{n} {state}" for state, n in counts.items() if state != "done" and (n or state == "failed"))
    small = [first, ("Trials done", str(counts["done"]), others), ("Trust in the old runs", *trust)]
    small += [("Chance of a better one", *left)] if left else []
    found = [
        f'<div class="card"><dt>{e(title)}</dt><dd class="big">{e(big)}</dd><dd class="note">{e(note)}</dd></div>'
        for title, big, note in small
    ]
    if verdict:
        found.append(f'<div class="card whole"><dt>Did the old runs help?</dt><dd>{e(verdict)}</dd></div>')
    settings = ""
    if top:
        pairs = "".join(f"<div><dt>{e(name)}</dt><dd>{e(value)}</dd></div>" for name, value in top.params.items())
        settings = f'<h3>Best configuration</h3><dl class="settings">{pairs}</dl>'
    return f'<dl class="cards">{"".join(found)}</dl>{settings}'


def transfer_table(tasks: Sequence[TaskTransfer]) -> str:
    body = "".join(
        f'<tr><th scope="row">{e(t.name)}</th>{_signed(t.weight)}{_signed(t.gain)}{_signed(t.agreement)}</tr>'
        for t in tasks[:SHOWN]
    )
    if len(tasks) > SHOWN:
        body += f'<tr><th scope="row" colspan="4">... and {len(tasks) - SHOWN:,} more old tasks</th></tr>'
    head = _heads(["old task", "weight", "gain", "agreement"], {"weight", "gain", "agreement"})
    return _table("What each old task contributes", head, body)


def trial_table(rows: Sequence[Row], names: Sequence[str]) -> str:
    numeric = {"trial", "value", "predicted"} | {n for n in names if all(_is_number(r.params.get(n, 0)) for r in rows)}
    head = _heads(["trial", "state", "value", "predicted", "reason", *names], numeric)
    top = best(rows)
    body = "".join(_trial(row, names, numeric, row is top) for row in rows)
    return _table("All trials; click a heading to sort", head, body)


def _trial(row: Row, names: Sequence[str], numeric: set[str], is_best: bool) -> str:
    p = row.reasons.predicted if row.reasons else None
    predicted = '<td class="number"></td>'
    if p is not None and math.isfinite(p.mean):
        ends = f'<br><span class="quiet">{number(p.low)} … {number(p.high)}</span>' if math.isfinite(p.low) else ""
        predicted = f'<td class="number" data-key="{p.mean!r}">{number(p.mean)}{ends}</td>'
    state = f'<td class="state-{row.state}">{row.state}{" ★ best" if is_best else ""}</td>'
    near = _nearest(row)
    cells = [
        f'<th scope="row" class="number">{row.number}</th>{state}{_number(row.value)}{predicted}',
        f'<td class="why">{e(row.why)}{near}</td>',
    ]
    for name in names:
        value = text(row.params[name]) if name in row.params else ""
        cells.append(f"<td{' class=number' if name in numeric else ''}>{e(value)}</td>")
    return f"<tr{' class=best' if is_best else ''}>{''.join(cells)}</tr>"


def _nearest(row: Row) -> str:
    runs = row.reasons.nearest if row.reasons else ()
    if not runs:
        return ""
    lines = "".join(f"<li>{e(run.task)}: {e(number(run.value))}, {_apart(run, row)}</li>" for run in runs)
    head = f"{len(runs)} good old {'runs' if len(runs) > 1 else 'run'} nearby"
    return f"<details><summary>{head}</summary><ul>{lines}</ul></details>"


def _apart(run: OldRun, row: Row) -> str:
    other = [f"{name} {text(v)}" for name, v in run.params.items() if v != row.params.get(name)]
    if not other:
        return "the same configuration"
    return e(f"{run.distance:.0%} away: {', '.join(other)}")


def _table(caption: str, head: str, body: str) -> str:
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{e(caption)}"><table><caption>{e(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _heads(names: Sequence[str], numeric: set[str]) -> str:
    return "".join(
        f'<th scope="col"{" class=number" if n in numeric else ""}><button type="button">{e(n)}</button></th>'
        for n in names
    )


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return '<td class="number"></td>'
    return f'<td class="number" data-key="{float(value)!r}">{number(value)}</td>'


def _signed(value: float) -> str:
    return f'<td class="number" data-key="{value!r}">{value:+.2f}</td>' if math.isfinite(value) else "<td></td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
