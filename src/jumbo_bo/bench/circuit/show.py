"""One design in both modes: specs side by side in the terminal, pictures in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jumbo_bo.bench.circuit import TASK, pictures
from jumbo_bo.bench.circuit.design import Design, sizes
from jumbo_bo.bench.circuit.evaluate import MODES, check_tools, run
from jumbo_bo.bench.circuit.layout import layout
from jumbo_bo.bench.circuit.measure import Specs, measure
from jumbo_bo.bench.circuit.programs import Failed
from jumbo_bo.bench.circuit.score import GOALS, Goal, score
from jumbo_bo.bench.circuit.simulate import Simulation
from jumbo_bo.errors import UserError
from jumbo_bo.extras import require


def show(design: Design, out: Path, console: Console) -> None:
    """Evaluates the design, keeping every file of both simulations in the folder, and shows what came out."""
    require("the picture of the layout", "matplotlib")
    check_tools()
    simulations: dict[str, Simulation] = {}
    for mode in MODES:
        folder = out / mode
        folder.mkdir(parents=True, exist_ok=True)
        try:
            simulations[mode] = run(design, mode, folder)
        except Failed as failure:
            raise UserError(f"{mode}: {failure}; its files are in {folder}") from None
    specs = {mode: measure(simulation) for mode, simulation in simulations.items()}
    drawn = layout(sizes(design))
    console.print(device_table(design))
    console.print(spec_table(specs))
    title = f"{TASK}: {drawn.width:.0f} x {drawn.height:.0f} um, layout score {score(specs['layout']):.3f}"
    pictures.draw_layout(drawn, title, out / "layout.png")
    pictures.draw_responses(simulations, out / "responses.png")
    pictures.write_page(drawn, simulations, title, out / "circuit.html")
    console.print(
        f"layout.png, responses.png, circuit.html, netlists and amp.mag are in {out}", highlight=False, soft_wrap=True
    )


def device_table(design: Design) -> Table:
    sized = sizes(design)
    table = Table(title="devices")
    for column in ("device", "kind", "size", "between"):
        table.add_column(column)
    for name, fet in sized.fets.items():
        size = f"{fet.fingers} x {fet.width:g} um / {fet.length:g} um"
        table.add_row(name, f"{fet.kind}mos", size, f"{fet.drain}, {fet.gate}, {fet.source}")
    table.add_row("Rz", "poly", f"{sized.resistor:.4g} ohm", "o1, nz")
    table.add_row("Cc", "MIM", f"{sized.capacitor * 1e15:.4g} fF", "nz, out")
    return table


def spec_table(specs: Mapping[str, Specs]) -> Table:
    table = Table(title="specs (a star: missed)")
    table.add_column("spec")
    for column in ("goal", *specs):
        table.add_column(column, justify="right")
    for goal in GOALS:
        sign = ">=" if goal.sense > 0 else "<="
        wanted = f"{sign} {goal.target * goal.scale:g} {goal.unit}"
        table.add_row(goal.text, wanted, *(_value(goal, found) for found in specs.values()))
    table.add_section()
    table.add_row("score", "", *(f"{score(found):.3f}" for found in specs.values()))
    return table


def _value(goal: Goal, specs: Specs) -> str:
    star = "*" if goal.miss(specs) < 0 else " "
    return f"{getattr(specs, goal.name) * goal.scale:.3g} {star}"
