"""What was measured of the quantities with limits: a plot for each, and whether the chances came true."""

from __future__ import annotations

from collections.abc import Sequence

from jumbo_bo.data.limits import Limit
from jumbo_bo.report.marks import Figure, axis, figure, is_wide, marks, reach, trace
from jumbo_bo.report.rows import Row


def quantity(rows: Sequence[Row], limit: Limit) -> Figure | None:
    """Its values against trials, and the ends of what is allowed."""
    seen = [(row.number, row.quantities[limit.name]) for row in rows if limit.name in row.quantities]
    if not seen:
        return None
    ends = [end for end in limit.ends if end is not None]
    values = [*(value for _, value in seen), *ends]
    log = is_wide(values)
    kinds = (
        ("meets the limit", True, {"symbol": "circle", "color": "--old"}),
        ("does not", False, {"symbol": "x", "color": "--bad"}),
    )
    data = [marks(name, [p for p in seen if limit.met(p[1]) == met], marker) for name, met, marker in kinds]
    span, dashed = (rows[0].number, rows[-1].number), {"color": "--muted", "dash": "dash", "width": 1.5}
    data += [
        trace("limit", [(n, end) for n in span], mode="lines", line=dashed, hoverinfo="skip", showlegend=i == 0)
        for i, end in enumerate(ends)
    ]
    pad = 0.5 + 0.01 * span[1]
    x = axis("trial", ends=[-pad, span[1] + pad], tickformat="d", dtick=1 if span[1] <= 12 else None)
    return figure([d for d in data if d["x"]], x, axis(limit.name, log, reach(values, log, 0.08)))


def sentence(rows: Sequence[Row], limit: Limit) -> str:
    """How many trials met it, and how many were expected to."""
    seen = [row for row in rows if limit.name in row.quantities]
    n = sum(limit.met(row.quantities[limit.name]) for row in seen)
    text = f"{n} of {len(seen)} trials meet it."
    known = [row for row in seen if row.reasons and str(limit) in row.reasons.limits]
    if known:
        expected = sum(row.reasons.limits[str(limit)] for row in known if row.reasons)
        came = sum(limit.met(row.quantities[limit.name]) for row in known)
        text += (
            f" Of the {len(known)} whose chance was said before they ran, {expected:.1f} were expected to; {came} do."
        )
    return text
