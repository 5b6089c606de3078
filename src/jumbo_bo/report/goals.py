"""The report of a study with several goals: its front, what the trials added to it, and what is known of each goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from jumbo_bo.data.goals import Goal
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit
from jumbo_bo.fronts import unbeaten, volumes
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.report import sections, tables
from jumbo_bo.report.marks import Figure, axis, figure, is_wide, reach, safe, trace
from jumbo_bo.report.rows import Row, clip, counted, number
from jumbo_bo.report.sections import Section
from jumbo_bo.space.space import Space
from jumbo_bo.transfer import transfer

OLD_FRONTS = 5  # old tasks whose fronts are drawn, those with the most runs
LATE = 5  # trials whose share in the volume is said
NAMES = 24  # characters of a task's name
Values = Mapping[str, float]


def values_of(row: Row, goals: Sequence[Goal]) -> Values:
    """Empty unless the row has a value of every goal."""
    found = {
        goals[0].name: row.value,
        **{g.name: row.quantities[g.name] for g in goals[1:] if g.name in row.quantities},
    }
    return found if row.measured and len(found) == len(goals) else {}


def on_front(found: Sequence[Row], goals: Sequence[Goal]) -> list[Row]:
    """Rows that no other one beats in all goals, of those that meet the constraints and the limits; the best in the
    first goal comes first. The same rows in any other list are marked by `improved`."""
    some = [row for row in found if values_of(row, goals) and row.met and row.allowed]
    return [some[i] for i in unbeaten([values_of(row, goals) for row in some], goals)]


def goal_sections(
    found: Sequence[Row],
    drawn: Sequence[Row],
    space: Space,
    goals: Sequence[Goal],
    limits: Sequence[Limit],
    optimizer: ParetoOptimizer | None,
    reference: Values,
) -> list[Section]:
    """`drawn` are the rows that count."""
    front = on_front(drawn, goals)
    top = {row.number for row in front}
    found, drawn = ([replace(row, improved=row.number in top) for row in some] for some in (found, drawn))
    shares = _shares(drawn, goals, reference)
    return [
        Section("summary", "Summary", "", body=tables.lead(_lead(front, shares)) + _cards(drawn, front, goals)),
        _front_section(drawn, front, goals, optimizer, space),
        _volume_section(shares),
        *sections.limit_sections(drawn, limits),
        *_each(drawn, space, goals, optimizer),
        sections.map_section(drawn, optimizer),
        sections.space_section([], space),
        sections.durations_section(drawn),
        sections.trials_section(found, space, limits, goals),
    ]


def _shares(drawn: Sequence[Row], goals: Sequence[Goal], reference: Values) -> list[tuple[int, float]]:
    """Number of the trial, and the share of the last volume that the front dominated after it."""
    some = [row for row in drawn if values_of(row, goals) and row.met and row.allowed]
    found = volumes([values_of(row, goals) for row in some], goals, reference)
    return [(row.number, share) for row, share in zip(some, found, strict=True)]


def _lead(front: Sequence[Row], shares: Sequence[tuple[int, float]]) -> list[str]:
    if not front:
        return ["No trial has a value of every goal yet."]
    which = "it" if len(front) == 1 else "them"
    said = [f"{counted(len(front), 'trial')} on the front: no other one beats {which} in all goals."]
    if len(shares) > LATE:
        said.append(f"The last {LATE} results added {1 - shares[-1 - LATE][1]:.0%} of the volume that it dominates.")
    return said


def _cards(drawn: Sequence[Row], front: Sequence[Row], goals: Sequence[Goal]) -> str:
    small = []
    for goal in goals:
        best = max(front, key=lambda row: goal.sign * values_of(row, goals)[goal.name], default=None)
        shown = (number(values_of(best, goals)[goal.name]), f"trial {best.number}") if best else ("none yet", "")
        small.append((f"{'Lowest' if goal.direction == 'minimize' else 'Highest'} {goal.name}", *shown))
    return tables.small_cards([*small, tables.states(drawn)])


def _front_section(
    drawn: Sequence[Row], front: Sequence[Row], goals: Sequence[Goal], optimizer: ParetoOptimizer | None, space: Space
) -> Section:
    if not front:
        return Section("front", "Front", "", gap="No trial has a value of every goal yet.")
    history = optimizer.history if optimizer else None
    old = list(_old_fronts(history, goals)) if isinstance(history, History) else []
    several = tuple(pair(drawn, front, goals, a, b, old) for a, b in combinations(range(len(goals)), 2))
    sentence = f"Trials that no other one beats in all goals: {_wanted(goals)}. Dashed: the front of the first half."
    if old:
        sentence += " Dotted: fronts of old tasks, where they are in sight."
    one, more = (several[0], ()) if len(several) == 1 else (None, several)
    return Section("front", "Front", sentence, one, tables.front_table(front, goals, space.names), more)


def _wanted(goals: Sequence[Goal]) -> str:
    return ", ".join(f"{g.name} {'low' if g.direction == 'minimize' else 'high'}" for g in goals)


def _old_fronts(history: History, goals: Sequence[Goal]) -> Iterator[tuple[str, list[Values]]]:
    """Of old tasks that know every goal."""
    known = {g.name: {t.name: t for t in history.limits[g.name].tasks} for g in goals[1:] if g.name in history.limits}
    if len(known) < len(goals) - 1:
        return
    for task in sorted(history.tasks, key=lambda t: -len(t.y))[:OLD_FRONTS]:
        others = {name: tasks[task.name] for name, tasks in known.items() if task.name in tasks}
        if len(others) < len(known):
            continue
        sign = {name: history.limits[name].sign(task.name) for name in others}
        at = {name: dict(zip((u.tobytes() for u in t.u), sign[name] * t.y, strict=True)) for name, t in others.items()}
        rows = [
            {
                goals[0].name: float(history.sign(task.name) * y),
                **{name: float(at[name][u.tobytes()]) for name in others},
            }
            for u, y in zip(task.u, task.y, strict=True)
            if all(u.tobytes() in its for its in at.values())
        ]
        if rows:
            yield task.name, [rows[i] for i in unbeaten(rows, goals)]


def pair(
    drawn: Sequence[Row],
    front: Sequence[Row],
    goals: Sequence[Goal],
    a: int,
    b: int,
    old: Sequence[tuple[str, list[Values]]],
) -> Figure:
    """Two of the goals. With more than two, what is on the front need not be at the edge here."""
    x, y = goals[a], goals[b]
    some = [row for row in drawn if values_of(row, goals)]
    half = on_front(some[: (len(some) + 1) // 2], goals)
    top = {row.number for row in front}
    two = len(goals) == 2

    def points(rows: Sequence[Values]) -> list[tuple[float, float]]:
        return sorted((row[x.name], row[y.name]) for row in rows)

    def edge(name: str, rows: Sequence[Values], dash: str, colour: str) -> Figure:
        line = {"shape": "hv" if x.direction == "minimize" else "vh", "color": colour, "dash": dash, "width": 2}
        return trace(name, points(rows), mode="lines" if two else "markers", line=line, hoverinfo="skip")

    data = [edge(safe(clip(name, NAMES)), rows, "dot", "--muted") for name, rows in old]
    if two:
        data += [edge("front of the first half", [values_of(r, goals) for r in half], "dash", "--new")] if half else []
        data.append(edge("front", [values_of(r, goals) for r in front], "solid", "--old"))
    kinds = (
        ("trial", [r for r in some if r.met and r.number not in top], {"symbol": "circle-open", "color": "--muted"}),
        ("does not meet the limits", [r for r in some if not r.met], {"symbol": "x-thin-open", "color": "--bad"}),
        ("on the front", front, {"symbol": "diamond", "size": 11, "color": "--old"}),
    )
    for name, rows, marker in kinds:
        made = trace(name, [(values_of(r, goals)[x.name], values_of(r, goals)[y.name]) for r in rows], mode="markers")
        made |= {"marker": {"size": 8} | marker, "text": [str(r.number) for r in rows]}
        made["hovertemplate"] = "trial %{text}: %{x:.4g}, %{y:.4g}<extra></extra>"
        data += [made] if rows else []
    axes = []
    for goal in (x, y):
        seen = [values_of(row, goals)[goal.name] for row in some]
        log = is_wide(seen)
        axes.append(axis(safe(goal.name), log, reach(seen, log, 0.08)))
    return figure(data, *axes)


def _volume_section(shares: Sequence[tuple[int, float]]) -> Section:
    sentence = "How much of the volume that the front dominates today it dominated after each trial: where the line is "
    sentence += "flat, trials added little."
    if not shares:
        return Section("volume", "Progress", "", gap="No trial has a value of every goal yet.")
    line = {"shape": "hv", "width": 2.5, "color": "--old"}
    made = trace("share", shares, mode="lines", line=line)
    made["hovertemplate"] = "after trial %{x}: %{y:.0%}<extra></extra>"
    drawn = figure([made], axis("trial", tickformat="d"), axis("share", ends=[0, 1.05], tickformat=".0%"))
    return Section("volume", "Progress", sentence, drawn)


def _each(
    drawn: Sequence[Row], space: Space, goals: Sequence[Goal], optimizer: ParetoOptimizer | None
) -> Iterator[Section]:
    """What is known of each goal on its own, as in a study that has no other."""
    models = optimizer.models() if optimizer else {}
    for k, goal in enumerate(goals):
        rows, model = list(_of(drawn, goal, goals)), models.get(goal.name)
        known = transfer(model) if model else None
        found = [
            *sections.parameter_sections(rows, space, goal.direction, model),
            sections.transfer_section(known),
            sections.trust_section(rows, known),
            sections.calibration_section(rows),
        ]
        for section in found:
            yield replace(
                section, id=f"{section.id}-of-{k}", title=f"{goal.name}: {section.title[0].lower()}{section.title[1:]}"
            )


def _of(drawn: Sequence[Row], goal: Goal, goals: Sequence[Goal]) -> Iterator[Row]:
    """The rows as if there were no other goal."""
    best = -np.inf
    for row in drawn:
        value = values_of(row, goals).get(goal.name, np.nan)
        improved = bool(goal.sign * value > best) and row.met and row.allowed
        best = goal.sign * value if improved else best
        reasons = row.reasons.goals.get(goal.name) if row.reasons else None
        yield replace(row, value=value, reasons=reasons, improved=improved)
