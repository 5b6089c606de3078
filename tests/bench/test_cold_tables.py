"""benchmarks/cold.py: the tables of the suite without old runs, from made-up runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Put = Callable[..., Path]


@pytest.fixture(scope="module")
def cold() -> ModuleType:
    """By its path: the package has a module of this name."""
    path = Path(__file__).parents[2] / "benchmarks" / "cold.py"
    spec = importlib.util.spec_from_file_location("benchmark_cold", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def curve(*levels: float) -> list[float]:
    """Regret in trials 1 to 10, 11 to 30 and 31 to 60."""
    return [levels[0]] * 10 + [levels[1]] * 20 + [levels[2]] * 30


def section(text: str, name: str) -> dict[str, list[str]]:
    """Method -> cells of its row in the table of a section."""
    part = text.split(f"## {name}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_each_function_has_medians_cost_rank_and_difference(tmp_path: Path, put: Put, cold: ModuleType) -> None:
    for seed, scale in enumerate((1.0, 2.0, 3.0, 4.0, 5.0)):
        put("jumbo-mixture", seed, curve(8 * scale, 4 * scale, scale), "branin", "cold")
        put("random", seed, curve(8 * scale, 8 * scale, 10 * scale), "branin", "cold")
        put("jumbo-mixture", seed, curve(1, 1, scale / 10), "levy-4", "cold")
    put("random", 0, curve(1, 1, 0.01), "levy-4", "cold")
    text = cold.report(tmp_path)
    branin = section(text, "branin")
    assert branin["jumbo-mixture"][:5] == ["5", "24 [16, 32]", "12 [8, 16]", "3 [2, 4]", "0.20"]
    assert branin["jumbo-mixture"][5].startswith("1.00")
    # The smallest so far counts, so random stays at 8: log10(8) above the default on every seed.
    assert branin["random"][3] == "24 [16, 32]"
    assert branin["random"][5:] == ["2.00 [2.00, 2.00]", "**+0.90 [+0.90, +0.90]**"]
    levy = section(text, "levy-4")
    assert levy["random"] == ["1", "1", "1", "0.01", "0.20", "n/a", "-1.00"]  # one seed of five is too few for a rank
    assert section(text, "All functions")["random"][0] == "2"
    assert (tmp_path / "cold" / "functions.md").read_text(encoding="utf-8") == text


def test_without_the_default_there_is_nothing_to_compare_with(tmp_path: Path, put: Put, cold: ModuleType) -> None:
    put("random", 0, curve(1, 1, 1), "branin", "cold")
    with pytest.raises(SystemExit, match="jumbo-mixture"):
        cold.report(tmp_path)
