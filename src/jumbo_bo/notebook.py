"""What an optimizer has for people at a notebook: its trials as a table, its plots, and how it shows itself."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from jumbo_bo.extras import later

if TYPE_CHECKING:
    import polars as pl

    from jumbo_bo.optimizer import Optimizer
    from jumbo_bo.pareto import ParetoOptimizer
    from jumbo_bo.space.space import Params
    from jumbo_bo.suggestion import Suggestion
else:
    pl = later("polars")  # a slow import

# The only way up: plots are made in the room of the report, which is loaded when one is asked for.
drawing = later("jumbo_bo.report.notebook")
saving = later("jumbo_bo.saved")

Plot = Literal["progress", "predictions", "importance", "slices"]
LATEST = 10  # trials that an optimizer shows of itself


class InNotebooks:
    """For `Optimizer`; everything follows from what it was told."""

    @property
    def trials(self) -> pl.DataFrame:
        """What was told, in order, one row each: parameters, value, and what was predicted before."""
        return table(self)  # type: ignore[arg-type]

    def plot(self, kind: Plot | None = None) -> Any:
        """A Plotly figure: best so far, predicted against observed, importance of the parameters, slices along each of
        them. None: all in one."""
        return drawing.drawn(self, kind)

    def save(self, path: str | Path) -> None:
        """Everything in one file, what was learned from the old runs included."""
        saving.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote: it suggests what the saved one would have suggested next."""
        loaded: Self = saving.load(path)
        return loaded

    def _repr_html_(self) -> str:
        return shown(self)  # type: ignore[arg-type]


def asked(optimizer: Optimizer) -> list[Suggestion | None]:
    """The suggestion behind everything told; None for a configuration that was not suggested here."""
    known: dict[bytes, list[Suggestion]] = {}
    for suggestion in optimizer.suggestions:
        known.setdefault(optimizer.space.encode(suggestion.params).tobytes(), []).append(suggestion)
    points = (known.get(optimizer.space.encode(params).tobytes(), []) for params, _ in optimizer.told)
    return [same.pop(0) if same else None for same in points]


def table(optimizer: Optimizer) -> pl.DataFrame:
    """With a column per parameter between 'trial' and the others. Of a parameter of that name, the column is the
    parameter's."""
    told, made = optimizer.told, asked(optimizer)
    values = [None if math.isnan(y) else y for _, y in told]
    predicted = [s.predicted if s is not None and math.isfinite(s.predicted.mean) else None for s in made]
    columns: dict[str, list[Any]] = {"trial": list(range(len(told)))}
    rest: dict[str, list[Any]] = {
        "value": values,
        "state": ["failed" if y is None else "done" for y in values],
        "predicted": [p and p.mean for p in predicted],
        "low": [p and p.low for p in predicted],
        "high": [p and p.high for p in predicted],
        "why": [s and s.why for s in made],
    }
    params = {name: [p.get(name) for p, _ in told] for name in optimizer.space.names}
    numbers = dict.fromkeys(("value", "predicted", "low", "high"), pl.Float64) | {"state": pl.String, "why": pl.String}
    series = [
        pl.Series(name, cells, dtype=None if name in params else numbers.get(name), strict=False)
        for name, cells in (columns | params | {n: c for n, c in rest.items() if n not in params}).items()
    ]
    return pl.DataFrame(series)


def several(optimizer: ParetoOptimizer) -> pl.DataFrame:
    """The same with a column for every goal, and the chance to join the front that was said before."""
    told, made = optimizer.told, asked(optimizer)
    columns: dict[str, list[Any]] = {"trial": list(range(len(told)))}
    columns |= {name: [params.get(name) for params, _ in told] for name in optimizer.space.names}
    goals = {name: [None if math.isnan(y[name]) else y[name] for _, y in told] for name in optimizer.directions}
    rest: dict[str, list[Any]] = {
        "state": ["failed" if any(map(math.isnan, y.values())) else "done" for _, y in told],
        "joins": [s and s.explanation.joins for s in made],
        "why": [s and s.why for s in made],
    }
    kinds = {"joins": pl.Float64, "state": pl.String, "why": pl.String} | dict.fromkeys(goals, pl.Float64)
    columns |= {name: cells for name, cells in {**goals, **rest}.items() if name not in columns}
    return pl.DataFrame([pl.Series(name, cells, kinds.get(name), strict=False) for name, cells in columns.items()])


def shown(optimizer: Optimizer) -> str:
    """As HTML: the best one and the latest trials."""
    best = optimizer.best
    about = "" if best is None else f"; best {best.value:.4g}"
    return summed_up(optimizer, str(optimizer.direction), about, ["value"], [(p, [y]) for p, y in optimizer.told])


def summed_up(
    optimizer: Optimizer, goal: str, about: str, goals: list[str], results: list[tuple[Params, list[float]]]
) -> str:
    n = len(results)
    head = f"<b>Optimizer</b> ({html.escape(optimizer.method)}, {html.escape(goal)}): {n} trial{'' if n == 1 else 's'}"
    if optimizer.n_trials is not None:
        head += f" of {optimizer.n_trials}"
    names = optimizer.space.names
    told = list(enumerate(results))[-LATEST:][::-1]
    rows = [
        [i, *("failed" if math.isnan(y) else y for y in values), *(params.get(name, "") for name in names)]
        for i, (params, values) in told
    ]
    return f"<p>{head}{about}</p>{html_table(['trial', *goals, *names], rows) if rows else ''}"


def html_of_suggestion(suggestion: Suggestion) -> str:
    rows = [[name, value] for name, value in suggestion.params.items()]
    why = html.escape(suggestion.why)
    return f"<p><b>Suggestion {suggestion.number}</b></p>{html_table(['parameter', 'value'], rows)}<p>{why}</p>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def cell(value: Any) -> str:
        return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))

    heads = "".join(f"<th>{cell(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
