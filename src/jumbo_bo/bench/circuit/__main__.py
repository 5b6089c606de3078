"""python -m jumbo_bo.bench.circuit: one design in both modes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jumbo_bo.bench.circuit.design import Design
from jumbo_bo.bench.circuit.search import best_known
from jumbo_bo.bench.circuit.show import show
from jumbo_bo.errors import InputError, UserError

app = typer.Typer(add_completion=False)


@app.command()
def main(
    design: Annotated[
        Path | None, typer.Option(help="JSON file with the 8 variables; default: the best known.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures, netlists and the layout.")] = Path("runs/circuit"),
) -> None:
    """Simulate one design as a schematic and as an extracted layout; show specs, layout and responses."""
    try:
        show(_read(design), out, Console())
    except (UserError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


def _read(design: Path | None) -> Design:
    try:
        return Design.of(best_known()["design"] if design is None else json.loads(design.read_text()))
    except (TypeError, ValueError) as error:
        raise InputError(f"{design or 'the best known design'}: {error}") from error


if __name__ == "__main__":
    app()
