from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumbo_bo.bench import figures, interactive
from jumbo_bo.bench.stats import Curves
from jumbo_bo.methods import METHODS

CURVES: Curves = {
    ("p", "gp-ucb"): {0: np.array([np.inf, 4.0, 1.0]), 1: np.array([3.0, 2.0, 1.0])},
    ("p", "new<b>"): {0: np.array([1.0, 0.0, 0.0])},
    ("q", "gp-ucb"): {0: np.array([5.0, 4.0, 3.0])},
}
FLOORS = {"p": 0.1, "q": 0.1}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder below one that has the script, which need not be the real 5 MB here."""
    (tmp_path / "plotly.min.js").write_text("")
    return tmp_path / "suite"


def traces(path: Path) -> list[dict[str, Any]]:
    found = re.search(r"Plotly\.newPlot\(\s*\"figure\",\s*(\[.*?\]),\s*\{\"", path.read_text(), re.DOTALL)
    assert found
    return list(json.loads(found[1]))


def size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def test_every_method_has_a_style_of_its_own() -> None:
    assert set(METHODS) <= set(figures.STYLES)
    assert len(set(figures.STYLES.values())) == len(figures.STYLES)


def test_a_method_looks_the_same_in_every_figure_and_others_differ_from_it() -> None:
    labels = ["jumbo:warm=g", "gp-ucb", "x", "jumbo-joint"]
    look = figures.styles(labels)
    assert list(look) == ["gp-ucb", "jumbo-joint", "jumbo:warm=g", "x"]
    assert look["gp-ucb"] == figures.styles(["gp-ucb"])["gp-ucb"]
    assert len(set(look.values())) == 4
    assert len(figures.styles([str(i) for i in range(50)])) == 50  # more than there are: some share


def test_panels_wrap(tmp_path: Path) -> None:
    assert [figures._grid(n) for n in (1, 4, 5, 13)] == [(1, 1), (4, 1), (4, 2), (4, 4)]
    figures.regret_png(CURVES, ["gp-ucb", "new<b>"], FLOORS, tmp_path / "two.png")
    assert min(size(tmp_path / "two.png")) > 100


def test_a_row_that_is_not_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "COLUMNS", 2)
    figures.regret_png(CURVES, ["gp-ucb"], FLOORS | {"r": 0.1}, tmp_path / "three.png")
    width, height = size(tmp_path / "three.png")
    assert width / height == pytest.approx((2.45 * 2 + 1.4) / (2.3 * 2 + 0.1), rel=0.01)


def test_regret_page_is_the_mean_in_every_panel_and_one_legend(shared: Path) -> None:
    path = shared / "regret.html"
    figures.regret_html(CURVES, ["gp-ucb", "new<b>"], FLOORS, path)
    drawn = traces(path)
    lines = [trace for trace in drawn if trace.get("fill") is None]
    assert [(t["name"], t["showlegend"]) for t in lines] == [
        ("gp-ucb", True),
        ("new&lt;b&gt;", True),
        ("gp-ucb", False),  # the group of the first panel's entry hides this one too
    ]
    assert len({t["legendgroup"] for t in drawn if t["name"] == "gp-ucb"}) == 1
    assert lines[0]["customdata"] == ["nan", "3 ± 1", "1 ± 0"]
    assert lines[1]["customdata"] == ["1", "0", "0"]  # one seed: no error; drawn at a tenth of the floor, said as 0
    text = path.read_text()
    assert 'src="../plotly.min.js"' in text
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    figures.regret_html(CURVES, ["gp-ucb", "new<b>"], FLOORS, path)
    assert path.read_text() == text


def test_the_script_is_written_once_where_there_is_none(tmp_path: Path) -> None:
    figures.bars_html({"a": (1.0, 0.1)}, tmp_path / "x" / "a.html")
    script = tmp_path / "x" / "plotly.min.js"
    assert script.stat().st_size > 1e6
    (tmp_path / "plotly.min.js").touch()  # the nearer one counts
    figures.bars_html({"a": (1.0, 0.1)}, tmp_path / "x" / "a.html")
    assert 'src="plotly.min.js"' in (tmp_path / "x" / "a.html").read_text()
    before = script.stat().st_mtime_ns
    interactive.share_plotly(tmp_path / "x")
    assert script.stat().st_mtime_ns == before
    script.write_text("an older version")
    interactive.share_plotly(tmp_path / "x")
    assert script.stat().st_size > 1e6


def test_bars_and_lines(shared: Path) -> None:
    bars = {"gp-ucb": (0.0, 0.0), "jumbo:warm=g": (-0.3, float("nan"))}
    figures.bars_png(bars, shared / "bars.png", "difference")
    figures.bars_html(bars, shared / "bars.html", "difference")
    assert traces(shared / "bars.html")[0]["customdata"] == ["0 ± 0", "-0.3"]
    x = np.array([30.0, 300.0, 3000.0])
    lines = {"jumbo": (np.array([3.0, np.nan, 1.0]), np.array([1.0, np.nan, 0.5]))}
    figures.lines_png(x, lines, shared / "lines.png", "old rows", True, "area")
    figures.lines_html(x, lines, shared / "lines.html", "old rows", True, "area")
    assert '"type":"log"' in (shared / "lines.html").read_text()
    assert all(min(size(shared / name)) > 100 for name in ("bars.png", "lines.png"))


def test_a_band_has_a_gap_where_the_mean_has_one() -> None:
    x = np.arange(4.0)
    upper = np.array([1.0, 2.0, np.nan, 3.0])
    xs, ys = interactive._outline(x, upper - 1, upper)
    np.testing.assert_array_equal(xs, [0, 1, 1, 0, np.nan, 3, 3, np.nan])
    np.testing.assert_array_equal(ys, [1, 2, 1, 0, np.nan, 3, 2, np.nan])
    assert np.isnan(interactive._outline(x, upper * np.nan, upper * np.nan)[0]).all()
