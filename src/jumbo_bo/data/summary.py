"""How old runs were read: what was found, dropped and filled in, as data and as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import TextWrapper

from jumbo_bo.errors import clip

WIDTH = 100
SHOWN = 40  # longest list in a summary


@dataclass(frozen=True)
class Dropped:
    """Rows that cannot be used, all for one reason."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True)
class Report:
    """How one source (a file, a frame, a study) was read."""

    source: str
    direction: str
    read: Mapping[str, int]  # task -> rows found
    dropped: Mapping[str, tuple[Dropped, ...]]  # task -> why rows are not used
    missing: Mapping[str, str]  # parameter -> what its column was filled with
    extra: tuple[str, ...]  # columns not used


def table(rows: Iterable[tuple[str, ...]], total: int) -> Iterator[str]:
    """Aligned lines of a header and `total` rows, of which no more are computed than shown."""
    shown = list(islice(rows, SHOWN + 1)) if total else []
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
    if total > SHOWN:
        yield f"... and {total - SHOWN:,} more tasks"


def notes(reports: Sequence[Report]) -> Iterator[str]:
    """Dropped rows with an example each, then columns that were missing or ignored, over all sources."""
    drops: dict[tuple[str, str], Dropped] = {}
    missing: dict[str, list[str]] = {}
    for r in reports:
        for task, dropped in r.dropped.items():
            for d in dropped:
                first = drops.setdefault((task, d.reason), Dropped(d.reason, 0, d.example))
                drops[task, d.reason] = Dropped(d.reason, first.count + d.count, first.example)
        for name, how in r.missing.items():
            missing.setdefault(f"{name}: {how}", []).append(r.source)
    extra = sorted({column for r in reports for column in r.extra})
    reasons = [f"{clip(task)}: {d.count:,} x {d.reason}, e.g. {d.example}" for (task, _), d in drops.items()]
    if len(reasons) > SHOWN:
        reasons[SHOWN:] = [f"... and {len(reasons) - SHOWN:,} more reasons"]
    yield from _section("dropped rows", reasons)
    yield from _section("missing parameters", [f"{what}, in {some(names)}" for what, names in missing.items()])
    yield from _section("ignored columns", [", ".join(extra)] if extra else [])


def some(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], "..."] if len(names) > 3 else names)


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    wrapper = TextWrapper(WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    if items:
        yield f"{title}:"
    for item in items:
        yield from wrapper.wrap(item)
