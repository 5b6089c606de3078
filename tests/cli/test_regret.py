"""The picture of the demo, in the terminal and as SVG."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from jumbo_bo.cli.regret import Scale, in_terminal, svg

LINES = {"with": [0.06, 0.02, 0.001, 0.0], "without": [0.5, 0.5, 0.2, 0.1]}
REGRETS = st.lists(st.floats(0, 1e3), min_size=1, max_size=60)


def test_higher_regret_stands_higher() -> None:
    rows = in_terminal(LINES, 60, height=9)
    assert rows[0].endswith("|○○○○○○"), "the first two trials of the search without old runs"
    assert rows[8].endswith("|         ●●●")
    assert rows[8].split("|")[0].strip() == "0"
    assert rows[-1].split() == ["●", "with", "○", "without"]
    assert rows[-2].split() == ["1", "trials", "4"]


def test_the_scale_is_logarithmic_with_no_regret_at_its_foot() -> None:
    scale = Scale.of(LINES)
    assert (scale.share(0.5), scale.share(0.0)) == (1.0, 0.0)
    assert scale.share(0.001) == 0.2
    assert math.isclose(2 * scale.share(math.sqrt(0.5 * 0.001)), scale.share(0.5) + scale.share(0.001))
    assert scale.ticks() == [0.0, 0.001, 0.01, 0.1]


def test_a_terminal_without_such_characters() -> None:
    text = "".join(in_terminal(LINES, 60, encoding="ascii"))
    assert text.isascii()
    assert "# with   o without" in text


@given(REGRETS, REGRETS, st.integers(24, 120))
def test_any_lines_can_be_drawn(one: list[float], other: list[float], width: int) -> None:
    lines = {"a<b": one, "c": other}
    rows = in_terminal(lines, width)
    assert max(map(len, rows)) <= width
    assert "●" in "".join(rows[:10])
    picture = ET.fromstring(svg(lines))
    assert [e.text for e in picture.iter("text")][-2:] == ["a<b", "c"]
    numbers = [float(n) for path in picture.iter("path") for n in re.findall(r"-?[\d.]+", path.get("d", ""))]
    assert all(0 <= n <= 720 for n in numbers)
