"""The parts of a report that are text: cards, the transfer table, the table of trials. Everything is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from jumbo_bo.data.goals import Goal
from jumbo_bo.data.limits import Limit
from jumbo_bo.data.summary import SHOWN
from jumbo_bo.influence import Importance
from jumbo_bo.neighbours import OldRun
from jumbo_bo.report.rows import Row, best, number, text
from jumbo_bo.report.verdict import Verdict
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import TaskTransfer


def e(value: Any) -> str:
    return html.escape(str(value))


def lead(sentences: Sequence[str]) -> str:
    """The verdict."""
    head, *more = sentences
    return f'<p class="verdict"><strong>{e(head)}</strong> {e(" ".join(more))}</p>'


def cards(rows: Sequence[Row], trust: tuple[str, str], said: Verdict, transfer: str) -> str:
    top = best(rows)
    first = ("Best value", number(top.value), f"trial {top.number}") if top else ("Best value", "none yet", "")
    small = [first, states(rows), ("Trust in the old runs", *trust)]
    small += [("Chance of a better one", said.share, said.of)] if said.share else []
    helped = f'<div class="card whole"><dt>Did the old runs help?</dt><dd>{e(transfer)}</dd></div>' if transfer else ""
    settings = ""
    if top:
        pairs = "".join(f"<div><dt>{e(name)}</dt><dd>{e(value)}</dd></div>" for name, value in top.params.items())
        settings = f'<h3>Best configuration</h3><dl class="settings">{pairs}</dl>'
    return small_cards(small, helped) + settings


def states(rows: Sequence[Row]) -> tuple[str, str, str]:
    """A card: how many trials there are in each state."""
    words = ("done", "failed", "pruned", "running", "waiting", "forgotten", "earlier")
    counts = {state: sum(row.state == state for row in rows) for state in words}
    others = ", ".join(f"{n} {state}" for state, n in counts.items() if state != "done" and (n or state == "failed"))
    return "Trials done", str(counts["done"]), others


def small_cards(small: Sequence[tuple[str, str, str]], more: str = "") -> str:
    found = [
        f'<div class="card"><dt>{e(title)}</dt><dd class="big">{e(big)}</dd><dd class="note">{e(note)}</dd></div>'
        for title, big, note in small
    ]
    return f'<dl class="cards">{"".join(found)}{more}</dl>'


def front_table(front: Sequence[Row], goals: Sequence[Goal], names: Sequence[str]) -> str:
    results = [goal.name for goal in goals]
    head = _heads(["trial", *results, "settings"], {"trial", *results})
    body = "".join(
        f'<tr><th scope="row" class="number">{row.number}</th>{_number(row.value)}'
        f"{''.join(_number(row.quantities[name]) for name in results[1:])}<td>{_settings(row, names)}</td></tr>"
        for row in front
    )
    return _table("The front; click a heading to sort", head, body)


def space_table(space: Space, top: Row | None) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in ("parameter", "values", "best"))
    body = ""
    for name, axis in zip(space.names, space.axes, strict=True):
        log = ", on a log scale" if getattr(axis, "log", False) else ""
        value = text(top.params[name]) if top and name in top.params else ""
        body += f'<tr><th scope="row">{e(name)}</th><td>{e(axis.describe() + log)}</td><td>{e(value)}</td></tr>'
    return _table("Every parameter with the values it may have", head, body, "plain")


def importance_table(found: Sequence[Importance]) -> str:
    head = _heads(["parameter", "share", "90% interval"], {"share", "90% interval"})
    body = "".join(
        f'<tr><th scope="row">{e(i.name)}</th><td class="number" data-key="{i.share!r}">{i.share:.0%}</td>'
        f'<td class="number" data-key="{i.low!r}">{i.low:.0%} to {i.high:.0%}</td></tr>'
        for i in found
    )
    return f"<details><summary>In numbers</summary>{_table('Importance of the parameters', head, body)}</details>"


def transfer_table(tasks: Sequence[TaskTransfer]) -> str:
    body = "".join(
        f'<tr><th scope="row">{e(t.name)}</th>{_signed(t.weight)}{_signed(t.error, "+.0%")}{_signed(t.agreement)}</tr>'
        for t in tasks[:SHOWN]
    )
    if len(tasks) > SHOWN:
        body += f'<tr><th scope="row" colspan="4">... and {len(tasks) - SHOWN:,} more old tasks</th></tr>'
    head = _heads(["old task", "weight", "error", "agreement"], {"weight", "error", "agreement"})
    return _table("What each old task contributes", head, body)


def trial_table(
    rows: Sequence[Row], names: Sequence[str], limits: Sequence[Limit] = (), goals: Sequence[Goal] = ()
) -> str:
    """The settings share a cell, so that any number of them fits any screen. With several goals, those that
    `improved` are on the front."""
    values = [goal.name for goal in goals] or ["value"]
    numbers = [*values, *(limit.name for limit in limits), f"predicted {values[0]}" if goals else "predicted"]
    head = _heads(["trial", "state", *numbers, "settings and reason"], {"trial", *numbers})
    top = best(rows)
    others: list[Goal | Limit] = [*goals[1:], *limits]
    marks = {row.number: "front" for row in rows if row.improved} if goals else {top.number: "best"} if top else {}
    body = "".join(_trial(row, names, marks.get(row.number, ""), others) for row in rows)
    return _table("All trials; click a heading to sort", head, body, "trials")


def _trial(row: Row, names: Sequence[str], mark: str, others: Sequence[Goal | Limit]) -> str:
    p = row.reasons.predicted if row.reasons else None
    predicted = '<td class="number"></td>'
    if p is not None and math.isfinite(p.mean):
        ends = f'<br><span class="quiet">{number(p.low)} … {number(p.high)}</span>' if math.isfinite(p.low) else ""
        predicted = f'<td class="number" data-key="{p.mean!r}">{number(p.mean)}{ends}</td>'
    state = f'<td class="state-{row.state}">{row.state}{f" ★ {mark}" if mark else ""}</td>'
    why, results = f'<p class="why">{e(row.why)}</p>' if row.why else "", _number(row.value) + _quantities(row, others)
    cells = f'<th scope="row" class="number">{row.number}</th>{state}{results}{predicted}'
    return f"<tr{' class=best' if mark else ''}>{cells}<td>{_settings(row, names)}{why}{_nearest(row)}</td></tr>"


def _settings(row: Row, names: Sequence[str]) -> str:
    return " ".join(
        f'<span class="setting"><span class="quiet">{e(name)}</span> {e(text(row.params[name]))}</span>'
        for name in names
        if name in row.params
    )


def _quantities(row: Row, others: Sequence[Goal | Limit]) -> str:
    cells = []
    for one in others:
        value = row.quantities.get(one.name, math.nan)
        missed = (
            ""
            if math.isnan(value) or isinstance(one, Goal) or one.met(value)
            else ' <span class="quiet">missed</span></td>'
        )
        cells.append(_number(value).replace("</td>", missed or "</td>"))
    return "".join(cells)


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


def _table(caption: str, head: str, body: str, kind: str = "") -> str:
    return (
        f"<table{f' class={kind}' if kind else ''}><caption>{e(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
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


def _signed(value: float, form: str = "+.2f") -> str:
    return f'<td class="number" data-key="{value!r}">{value:{form}}</td>' if math.isfinite(value) else "<td></td>"
