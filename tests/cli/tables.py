"""A folder with tables of old runs, and the command on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from typer.testing import CliRunner, Result

from jumbo_bo import cli


def jumbo(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    assert "Traceback" not in result.output
    return result


def said(result: Result) -> str:
    return " ".join(result.output.replace("│", " ").split())


def paint(tmp_path: Path) -> Path:
    """A folder 'paint' with runs/alpha.csv and runs/beta.csv, which agree, and runs/gamma.csv, their opposite."""
    here = tmp_path / "paint"
    (here / "runs").mkdir(parents=True)
    rng = np.random.default_rng(5)
    lr, units = 10 ** rng.uniform(-5, -1, 60), rng.choice([16, 32, 64, 256], 60)
    loss = (np.log10(lr) + 3) ** 2
    for name, sign in (("alpha", 1), ("beta", 2), ("gamma", -1)):
        frame = pl.DataFrame({"run_id": range(60), "lr": lr, "units": units, "loss": sign * loss})
        frame.write_csv(here / "runs" / f"{name}.csv")
    return here
