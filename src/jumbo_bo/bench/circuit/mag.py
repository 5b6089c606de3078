"""A drawing: rectangles on named layers and labels, in micrometres, written as a Magic file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNITS = 100  # of the file per micrometre

Rectangle = tuple[int, int, int, int]  # left, bottom, right, top, in units of the file


@dataclass(frozen=True)
class Label:
    layer: str
    x: int
    y: int
    text: str


class Drawing:
    """Collects rectangles; `text()` is the Magic file."""

    def __init__(self, tech: str = "sky130mini") -> None:
        self.tech = tech
        self._boxes: dict[str, list[Rectangle]] = {}
        self._labels: list[Label] = []

    @property
    def boxes(self) -> Mapping[str, list[Rectangle]]:
        return self._boxes

    @property
    def labels(self) -> tuple[Label, ...]:
        return tuple(self._labels)

    def box(self, layer: str, x0: float, y0: float, x1: float, y1: float) -> None:
        """Two opposite corners in any order; a rectangle that rounds to nothing is left out."""
        left, right = sorted((to_grid(x0), to_grid(x1)))
        bottom, top = sorted((to_grid(y0), to_grid(y1)))
        if left < right and bottom < top:
            self._boxes.setdefault(layer, []).append((left, bottom, right, top))

    def square(self, layer: str, x: float, y: float, half: float) -> None:
        self.box(layer, x - half, y - half, x + half, y + half)

    def label(self, layer: str, x: float, y: float, text: str) -> None:
        self._labels.append(Label(layer, to_grid(x), to_grid(y), text))

    def text(self) -> str:
        lines = ["magic", f"tech {self.tech}", "timestamp 1"]
        for layer, boxes in self._boxes.items():
            lines.append(f"<< {layer} >>")
            lines += [f"rect {left} {bottom} {right} {top}" for left, bottom, right, top in boxes]
        lines.append("<< labels >>")
        lines += [f"rlabel {a.layer} {a.x} {a.y} {a.x} {a.y} 0 {a.text}" for a in self._labels]
        return "\n".join([*lines, "<< end >>"]) + "\n"


def to_grid(length: float) -> int:
    return round(length * UNITS)
