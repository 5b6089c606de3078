"""What was read from old runs, as tables and as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from jumbo_bo.data.history import History
from jumbo_bo.data.likeness import SHARED
from jumbo_bo.errors import UserError, clip
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import StudyFile, span


def show(screen: Console, history: History, rename: Mapping[str, str] | None) -> None:
    """`rename` tells which column became which parameter; None when that was shown already."""
    screen.print(fitted(history.summary(), screen.width if screen.is_terminal else None))
    if rename is not None:
        _show_columns(screen, history, rename)
    names, rho = history.correlations(neighbours=True)
    if len(names) > 1:
        measured = history.correlations()[1]
        _show_correlations(screen, names, rho.tolist(), [[math.isfinite(r) for r in row] for row in measured.tolist()])
    if len(names) < len(history.tasks):
        screen.print(f"Only the first {len(names)} tasks were compared.")


def of_study(study: StudyFile) -> dict[str, Any]:
    history, rename = history_of(study)
    return data(history, rename)


def history_of(study: StudyFile) -> tuple[History, Mapping[str, str]]:
    """The old runs that it names, and which column became which parameter."""
    history = study.history()
    if history is None:
        raise UserError(f'{study.path} names no old runs; add [[history]] with files = "runs/*.csv" to it')
    return history, {old: new for source in study.old_runs for old, new in source.options.get("rename", {}).items()}


def data(history: History, rename: Mapping[str, str]) -> dict[str, Any]:
    names, rho = history.correlations(neighbours=True)
    measured = history.correlations()[1]
    read: dict[str, int] = {}
    for report in history.reports:
        for task, n in report.read.items():
            read[task] = read.get(task, 0) + n
    target = [history.target] if history.target else []
    used = {t.name: t.of[0] for t in (*target, *history.tasks, *history.constant)}
    return {
        "rows": {"used": history.n_usable, "read": sum(read.values()), "learned_from": history.n_rows},
        "target": history.target.name if history.target else None,
        "tasks": {
            name: {"used": used.get(name, 0), "read": n, "constant": name in {t.name for t in history.constant}}
            for name, n in sorted(read.items())
        },
        "parameters": parameters(history.space),
        "renamed": dict(rename),
        "sources": [asdict(report) for report in history.reports],
        "correlations": {
            "tasks": list(names),
            "spearman": [[r if math.isfinite(r) else None for r in row] for row in rho.tolist()],
            "on_shared_configurations": [[math.isfinite(r) for r in row] for row in measured.tolist()],
        },
    }


def parameters(space: Space) -> dict[str, str]:
    """Of each what values it has, in words."""
    return {name: span(dist, space.conditions.get(name)) for name, dist in space.distributions.items()}


def fitted(text: str, width: int | None) -> str:
    """A summary wrapped to the terminal: its own line breaks undone, its indents kept."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("    ") and lines:
            lines[-1] += line[3:]
        else:
            lines.append(line)
    wrapper = textwrap.TextWrapper(width or 10**6, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(part for line in lines for part in wrapper.wrap(line))


def plain_table(*columns: str, right: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if right and i else "left", overflow="fold")
    return table


def _show_columns(screen: Console, history: History, rename: Mapping[str, str]) -> None:
    column = {new: old for old, new in rename.items()}
    table = plain_table("parameter", "values", "read from")
    for name, dist in history.space.distributions.items():
        lacking = [r.source for r in history.reports if name in r.missing]
        source = column.get(name, name) if len(lacking) < len(history.reports) else "-"
        where = f" (missing in {len(lacking)} of {len(history.reports)} sources)" if lacking else ""
        table.add_row(name, span(dist, history.space.conditions.get(name)), source + where)
    screen.print()
    screen.print(table)


def _show_correlations(
    screen: Console, names: Sequence[str], rho: Sequence[Sequence[float]], measured: Sequence[Sequence[bool]]
) -> None:
    """The lower triangle, as many columns as there is room for."""
    pairs = [(rho[i][j], measured[i][j]) for i in range(len(names)) for j in range(i)]
    if not any(math.isfinite(r) for r, _ in pairs):
        screen.print(
            f"\nThe tasks cannot be compared: they have fewer than {SHARED} rows, or no configurations close to each "
            "other."
        )
        return
    rows = [clip(name, 20) for name in names]
    heads, room = rows[:-1], screen.width - max(map(len, rows)) - 4
    if sum(max(len(name), 6) + 2 for name in heads) > room:
        rows = [f"{i} {name}" for i, name in enumerate(rows, 1)]
        heads = [str(i) for i in range(1, len(rows))][: (room - 3) // 8]
    table = plain_table("", *heads, right=True)
    for i, name in enumerate(rows[1:], 1):
        table.add_row(name, *(_correlation(rho[i][j], measured[i][j]) if j < i else "" for j in range(len(heads))))
    screen.print("\nHow alike the tasks are (Spearman correlation of their results):")
    screen.print(table)
    if len(heads) < len(names) - 1:
        screen.print(f"Showing {len(heads)} of {len(names) - 1} columns; --json shows all")
    screen.print("1: they agree on what is good; 0: unrelated; below 0: they disagree.")
    if any(math.isfinite(r) and not known for r, known in pairs):
        screen.print(
            f"~: estimated from neighbouring configurations, because fewer than {SHARED} are shared; too low when "
            "rows are few."
        )
    if not all(math.isfinite(r) for r, _ in pairs):
        screen.print("-: unknown (too few rows, or all results equal).")


def _correlation(rho: float, measured: bool) -> str:
    return f"{'' if measured else '~'}{rho:.2f}" if math.isfinite(rho) else "-"
