"""Parallel coordinates in the report: paths through the parameters, ticks in the user's units."""

from __future__ import annotations

from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from report_pages import SPACE, Reader, marks, plots, study, trial

from jumbo_bo.report import page
from jumbo_bo.report.parallel import ticks
from jumbo_bo.space.space import Space


def test_paths_go_through_the_parameters_in_their_places() -> None:
    good = {"lr": 1e-3, "units": 16, "act": "tanh"}
    html = page("w", SPACE, "minimize", [trial(0, 1.0, params=good), trial(1, 2.0)])
    best = marks(html, "parallel")["best"]
    assert best["x"] == [0.0, 0.5, pytest.approx(0.001, abs=1e-3), 0.75, None]
    assert best["y"] == [0, 1, 2, 3, None]


@pytest.mark.parametrize(
    ("dist", "labels"),
    [
        (FloatDistribution(1e-5, 1e-1, log=True), ["1e-05", "0.0001", "0.001", "0.01", "0.1"]),
        (FloatDistribution(0, 1), ["0", "0.25", "0.5", "0.75", "1"]),
        (CategoricalDistribution(("relu", "tanh")), ["relu", "tanh"]),
        (CategoricalDistribution((32, 8, 16)), ["8", "16", "32"]),
        (CategoricalDistribution((None, True, "a very long name of a choice")), ["None", "True", "a very long…"]),
        (FloatDistribution(2, 2), ["2"]),
    ],
)
def test_ticks_are_labelled_in_the_users_units(dist: Any, labels: list[str]) -> None:
    axis = Space({"p": dist}).axes[0]
    assert [label for _, label in ticks(axis)] == labels
    assert all(0 <= u <= 1 for u, _ in ticks(axis))


def test_ticks_of_many_levels_are_few_and_right() -> None:
    axis = Space({"p": IntDistribution(1, 10**9)}).axes[0]
    found = ticks(axis)
    assert 2 <= len(found) <= 5
    assert [u for u, _ in found] == pytest.approx([float(axis.encode([int(label)])[0]) for _, label in found])


def test_only_some_paths_of_a_large_study_are_drawn_and_the_page_says_so() -> None:
    html = page("w", SPACE, "minimize", study([float(i) for i in range(40)]))
    assert "paths are drawn per group" not in Reader(html).words
    html = page("w", SPACE, "minimize", study([float(i) for i in range(500)]))
    assert all(trace["x"].count(None) <= 20 for trace in plots(html)["plot-parallel"]["data"])
    assert "At most 20 paths are drawn per group" in Reader(html).words
