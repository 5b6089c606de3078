"""Does this machine give the reference scores? `python -m jumbo_bo.bench.circuit.reference FILE.csv [EVERY]`

The file has 200 random points in both modes, in the unit cube, measured before the rule about the size of the step.
A score may differ by 1 %, or by what that rule changes: where it applies, the reference is scored again with an output
that never settles. What was found is written beside the file.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench.circuit.design import SPACE, Design
from jumbo_bo.bench.circuit.evaluate import MODES, evaluate
from jumbo_bo.bench.circuit.measure import NEVER, STEP_ERROR, Specs
from jumbo_bo.bench.circuit.netlist import STEP
from jumbo_bo.bench.circuit.score import score

TOLERANCE = 0.01
COLUMNS = ("gain", "ugb", "pm", "power", "noise", "settling")


def compare(points: pl.DataFrame) -> pl.DataFrame:
    """One row per point: reference, wanted (after the rule) and found score, whether the rule changes it, CPU time."""
    rows = []
    for row in points.iter_rows(named=True):
        before = _cpu()
        result = evaluate(Design.of(SPACE.decode([row[f"u{i + 1}"] for i in range(SPACE.d)])), row["mode"])
        found = {"point": row["point"], "mode": row["mode"], "reference": row["score"], "found": result.score}
        incomplete = result.specs is not None and abs(result.specs.step - STEP) > STEP_ERROR * STEP
        wanted = _never_settled(row) if incomplete else row["score"]
        changed = abs(wanted - row["score"]) > TOLERANCE * abs(row["score"])
        same = abs(result.score - wanted) <= TOLERANCE * abs(wanted)
        times = {"cpu_ms": 1e3 * (_cpu() - before), "error": result.error}
        rows.append({**found, "wanted": wanted, "step_rule": changed, "same": same, **times})
    return pl.DataFrame(rows)


def _never_settled(row: dict[str, float]) -> float:
    return score(Specs(**{name: row[name] for name in COLUMNS} | {"settling": NEVER, "offset": 0.0, "step": 0.0}))


def _cpu() -> float:
    """Seconds of this process and of the programs it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main(path: Path, every: int = 1) -> int:
    points = pl.read_csv(path)
    table = compare(points.filter(pl.col("point") % every == 0))
    table.write_parquet(path.with_name(f"{path.stem}_found.parquet"))
    for mode in MODES:
        part = table.filter(pl.col("mode") == mode)
        rule, plain = part.filter("step_rule"), part.filter(~pl.col("step_rule"))
        apart = np.abs(plain["found"].to_numpy() / plain["reference"].to_numpy() - 1).max(initial=0.0)
        same, median = int(part["same"].sum()), float(np.median(part["cpu_ms"].to_numpy()))
        changed = ", ".join(str(point) for point in rule["point"].to_list())
        print(f"{mode}: {same} of {len(part)} as expected, median CPU {median:.0f} ms")
        print(f"  without the step rule: {len(plain)} points, largest difference {apart:.2%}")
        print(f"  changed by the step rule: {len(rule)} points: {changed}")
    wrong = table.filter(~pl.col("same"))
    if len(wrong):
        print(wrong)
    return int(len(wrong) > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:3])))
