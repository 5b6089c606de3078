"""Parameters as every peer understands them: numbers in [0, 1], a few ordered levels, or labels.

A logarithmic parameter is a number on its logarithmic scale, because not every peer knows such scales. What a peer
suggests goes back through `decode`, which moves a number to the closest value the parameter can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jumbo_bo.space.axes import Nominal, centres
from jumbo_bo.space.space import Params, Space

Row = dict[str, float | str]

FEW = 32  # an ordered parameter with more levels is a number


@dataclass(frozen=True)
class Column:
    name: str
    kind: Literal["number", "ordered", "label"]
    levels: tuple[float | str, ...] = ()  # of an ordered parameter or of labels


def columns(space: Space) -> tuple[Column, ...]:
    found = []
    for name, axis in zip(space.names, space.axes, strict=True):
        if isinstance(axis, Nominal):
            found.append(Column(name, "label", tuple(f"c{i}" for i in range(axis.levels))))
        elif axis.levels is None or axis.levels > FEW:
            found.append(Column(name, "number"))
        else:
            found.append(Column(name, "ordered", tuple(axis.transform(centres(axis))[:, 0].tolist())))
    return tuple(found)


def encode(space: Space, params: Params) -> Row:
    row: Row = {}
    for column, axis, u in zip(columns(space), space.axes, space.encode(params), strict=True):
        row[column.name] = float(u)
        if column.kind != "number":
            row[column.name] = column.levels[int(np.argmin(np.abs(centres(axis) - u)))]
    return row


def decode(space: Space, row: Row) -> Params:
    u = []
    for column, axis in zip(columns(space), space.axes, strict=True):
        value = row[column.name]
        if column.kind == "number":
            u.append(float(value))
        elif column.kind == "label":
            u.append(float(centres(axis)[column.levels.index(value)]))
        else:
            u.append(float(centres(axis)[int(np.argmin(np.abs(np.array(column.levels, dtype=float) - float(value))))]))
    return space.decode(u)
