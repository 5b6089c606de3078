"""Conditions in study.toml: read, kept with the study, written by a guess, and in the command of a trial."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from study_texts import error, write

from jumbo_bo.cli.template import study_text
from jumbo_bo.data.spaces import is_of, record_of
from jumbo_bo.space.space import Space
from jumbo_bo.study.guess import guess
from jumbo_bo.study.job import Job, render
from jumbo_bo.study.study_file import load, space_changes

TEXT = """
name = "boosters"
[space]
booster = { type = "categorical", choices = ["tree", "linear"] }
depth = { type = "int", low = 1, high = 9, when = "booster == 'tree'" }
lambda = { type = "float", low = 0.0, high = 1.0 }
deep = { type = "float", low = 0.0, high = 1.0, when = "depth > 4 and `lambda` < 0.5" }
"""
COMMAND = "[objective]\ncommand = {command}\n"


def test_a_condition_is_read_and_written(tmp_path: Path) -> None:
    space = load(write(tmp_path, TEXT)).space
    assert space.conditions == {"depth": "booster == 'tree'", "deep": "depth > 4 and `lambda` < 0.5"}
    again = load(write(tmp_path, study_text("again", space))).space
    assert again == space


def test_wrong_conditions_name_the_file(tmp_path: Path) -> None:
    message = error(tmp_path, TEXT.replace("== 'tree'", "== 'three'"))
    assert "space: the condition of 'depth': \"booster == 'three'\": 'three' is none of ['tree', 'linear']" in message
    assert "space.depth.when is 3, expected text" in error(tmp_path, TEXT.replace("\"booster == 'tree'\"", "3"))


def test_a_study_knows_its_conditions(tmp_path: Path) -> None:
    space = load(write(tmp_path, TEXT)).space
    record = record_of(space)
    assert is_of(record, space)
    assert space_changes(record, space) == []
    other = Space(space.distributions, conditions={**space.conditions, "depth": "booster != 'linear'"})
    assert not is_of(record, other)
    (change,) = space_changes(record, other)
    assert re.fullmatch(r"depth: was .*, when booster == 'tree', now .*, when booster != 'linear'", change)
    (change,) = space_changes(record, Space(space.distributions, conditions={"depth": "booster == 'tree'"}))
    assert re.fullmatch(r"deep: was .*, when depth > 4 and `lambda` < 0.5, now 0.0 to 1.0", change)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["train"], ["train", "--booster", "linear", "--lambda", "0.5"]),
        (["train", "{booster}", "{depth}"], ["train", "linear"]),
        (["train", "--depth={depth}", "-v", "{booster}"], ["train", "-v", "linear"]),
        (["train", "--depth", "{depth}", "{booster}"], ["train", "linear"]),
        (["train", "--lambda={lambda}", "{depth}"], ["train", "--lambda=0.5"]),
    ],
)
def test_the_command_of_a_trial_has_what_exists(command: list[str], expected: list[str]) -> None:
    assert render(Job(tuple(command)), {"booster": "linear", "lambda": 0.5}) == expected


def test_an_argument_that_cannot_be_left_out(tmp_path: Path) -> None:
    text = TEXT + COMMAND.format(command='["train", "{booster},{depth}"]')
    message = error(tmp_path, text)
    assert "{depth} in '{booster},{depth}' together with other parameters" in message
    assert "exists only when booster == 'tree'; give it an argument of its own" in message


def table(n: int, seed: int = 0) -> tuple[Space, pl.DataFrame]:
    space = Space(
        {
            "booster": CategoricalDistribution(("dart", "linear", "tree")),
            "layers": IntDistribution(1, 3),
            "eta": FloatDistribution(0, 1),
            "rate": FloatDistribution(0, 1),
            "units_2": FloatDistribution(0, 1),
        },
        {"eta": "booster in ['dart', 'tree']", "rate": "booster == 'dart'", "units_2": "layers > 1"},
    )
    rng = np.random.default_rng(seed)
    rows = [dict.fromkeys(space.names) | space.decode(u) | {"loss": rng.random()} for u in space.sample(rng, n)]
    return space, pl.DataFrame(rows, infer_schema_length=None)


def test_empty_cells_become_conditions() -> None:
    space, frame = table(60)
    gappy = pl.Series("gappy", [None if i % 7 == 0 else i / 60 for i in range(60)])
    found = guess(frame.with_columns(gappy))
    assert found.space.conditions == space.conditions
    assert found.notes["rate"].endswith("; other rows have none")
    assert found.notes["gappy"].endswith("; 9 rows have none")
    assert guess(frame.fill_null(float("nan"))).space.conditions == space.conditions


@given(st.integers(0, 500), st.integers(8, 60))
def test_a_guess_is_true_of_every_row(seed: int, n: int) -> None:
    _, frame = table(n, seed)
    found = guess(frame)
    for row in frame.to_dicts():
        there = found.space.active({name: value for name, value in row.items() if value is not None})
        for name in found.space.conditions:
            assert (name in there) == (row[name] is not None)
