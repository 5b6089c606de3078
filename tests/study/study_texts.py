"""A small study.toml, and what loading a wrong one says."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.errors import UserError
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import load

SMALL = 'name = "s"\n[space]\nx = { type = "float", low = 0.0, high = 1.0 }\n'
SPACE = Space({"x": FloatDistribution(0, 1)})


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def error(folder: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        load(write(folder, text))
    assert str(folder / "study.toml") in str(caught.value)
    return str(caught.value)
