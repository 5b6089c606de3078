"""Pictures of regret by trial, in the terminal and as SVG.

Notation
    lines   name -> regret after each trial (how far the best so far is above the lowest possible value)
    share   how high a regret stands in the picture: 1 the largest one, 0 no regret; in between on a log scale
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 320  # of the SVG
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 12, 40  # its margins
COLOURS = ("--old", "--new")  # of the report's style sheet
MARKS = (("●", "○"), ("#", "o"))  # in the terminal; where these cannot be written, the second two
APART = 16  # between names

Lines = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Scale:
    low: float  # log10 of the smallest regret above 0
    high: float
    n: int  # trials

    @classmethod
    def of(cls, lines: Lines) -> Scale:
        some = [math.log10(v) for line in lines.values() for v in line if v > 0] or [0.0]
        return cls(min(some), max(max(some), min(some) + 0.1), max(map(len, lines.values())))

    @property
    def foot(self) -> float:
        """Where no regret stands."""
        return self.low - 0.25 * (self.high - self.low)

    def share(self, regret: float) -> float:
        level = math.log10(regret) if regret > 0 else self.foot
        return (level - self.foot) / (self.high - self.foot)

    def ticks(self) -> list[float]:
        """1, 2, 5, 10, ... times a power of ten, as many as are read with ease; and 0."""
        span = range(math.floor(self.low), math.ceil(self.high) + 1)
        every = [m * 10.0**k for k in span for m in ((1, 2, 5) if self.high - self.low < 1.5 else (1,))]
        return [0.0, *(t for t in every if t > 0 and self.low <= math.log10(t) <= self.high)]


def in_terminal(lines: Lines, width: int, height: int = 10, encoding: str = "utf-8") -> list[str]:
    """A row of text for each line of the picture, not wider than `width`."""
    scale = Scale.of(lines)
    marks = next(m for m in MARKS if _writable("".join(m), encoding))
    labels = {round(scale.share(t) * (height - 1)): f"{t:.3g}" for t in reversed(scale.ticks())}
    room = max(map(len, labels.values()))
    columns = max(1, min(scale.n * 3, width - room - 3))
    cells = [[" "] * columns for _ in range(height)]
    for line, mark in reversed(list(zip(lines.values(), marks, strict=False))):  # the first one over the others
        for column in range(columns):
            trial = min(len(line) - 1, column * len(line) // columns)
            cells[round(scale.share(line[trial]) * (height - 1))][column] = mark
    rows = [f"{labels.get(i, ''):>{room}} |{''.join(cells[i])}".rstrip() for i in range(height - 1, -1, -1)]
    foot = f"{' ' * room} +{'-' * columns}"
    trials = f"{' ' * room}  1{'trials':^{max(columns - 1 - len(str(scale.n)), 6)}}{scale.n}"
    legend = f"{' ' * room}  " + "   ".join(f"{m} {name}" for name, m in zip(lines, marks, strict=False))
    return [row[:width] for row in (*rows, foot, trials, legend)]


def _writable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def svg(lines: Lines) -> str:
    """Step lines with their names at the right ends."""
    scale = Scale.of(lines)
    parts = [*_axes(scale), *_drawn(scale, lines)]
    label = "Loss above the lowest possible one, by trial"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _x(scale: Scale, trial: int) -> float:
    return LEFT + (trial - 1) / max(scale.n - 1, 1) * (WIDTH - LEFT - RIGHT)


def _y(scale: Scale, regret: float) -> float:
    return TOP + (1 - scale.share(regret)) * (HEIGHT - TOP - BOTTOM)


def _axes(scale: Scale) -> Iterator[str]:
    for tick in scale.ticks():
        at = f"{_y(scale, tick):.1f}"
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="var(--line)"/>'
        yield f'<text x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">{tick:.3g}</text>'
    for trial in dict.fromkeys((1, *range(5, scale.n - 2, 5), scale.n)):
        yield f'<text x="{_x(scale, trial):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{trial}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 2}" text-anchor="middle">trials</text>'


def _drawn(scale: Scale, lines: Lines) -> Iterator[str]:
    ends: list[float] = []
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        path = f"M{_x(scale, 1):.1f} {_y(scale, line[0]):.1f}"
        path += "".join(f"H{_x(scale, i):.1f}V{_y(scale, v):.1f}" for i, v in enumerate(line[1:], 2))
        yield f'<path d="{path}" fill="none" stroke="var({colour})" stroke-width="3"/>'
        end = _y(scale, line[-1])
        while any(abs(end - other) < APART for other in ends):
            end -= APART
        ends.append(end)
        at = f'x="{_x(scale, scale.n) + 10:.1f}" y="{end:.1f}"'
        yield f'<text {at} dy="4" style="fill:var({colour})">{escape(name)}</text>'
