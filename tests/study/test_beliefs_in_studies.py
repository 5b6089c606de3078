"""`default`, `about`, `factor`, `within` and `odds` in study.toml, and `jumbo ask --fix`."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_texts import error, write

from jumbo_bo.errors import UserError
from jumbo_bo.runner.people import fixed_of
from jumbo_bo.space.beliefs import about
from jumbo_bo.study.study_file import load

STUDY = """
name = "s"
[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true, about = 1e-3 }
x = { type = "float", low = 0.0, high = 1.0, about = 0.5, within = 0.2, default = 0.25 }
units = { type = "int", low = 16, high = 64, step = 16, default = 32 }
kind = { type = "categorical", choices = ["a", "b"], about = "b", odds = 9 }
"""


def test_what_is_said_of_parameters(tmp_path: Path) -> None:
    file = load(write(tmp_path, STUDY))
    assert file.defaults == {"x": 0.25, "units": 32}
    assert file.beliefs == {"lr": about(1e-3, factor=3.0), "x": about(0.5, within=0.2), "kind": about("b", odds=9)}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("default = 32", "default = 33", "space.units.default is 33, expected an integer in [16, 64] in steps of 16"),
        ("default = 0.25", 'default = "x"', "space.x.default is 'x', expected a number in [0, 1]"),
        ("about = 1e-3", "about = 3", "space: the belief about 'lr' is 3, expected a number in [1e-05, 0.1]"),
        ("about = 1e-3", "factor = 3", "space.lr.about is missing, expected the value that factor goes with"),
        ("odds = 9", 'odds = "high"', "space.kind.odds is 'high', expected a number"),
        ("odds = 9", "odds = 0.5", "space: the belief about 'kind' has odds 0.5, expected a number above 1"),
        ("within = 0.2", "withn = 0.2", "space.x has an unknown key 'withn'; did you mean 'within'?"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in error(tmp_path, STUDY.replace(old, new))


def test_values_on_a_command_line(tmp_path: Path) -> None:
    space = load(write(tmp_path, STUDY)).space
    found = fixed_of(["lr=1e-3", "units=32", "kind=b"], space)
    assert found == {"lr": 1e-3, "units": 32, "kind": "b"}
    assert isinstance(found["units"], int)
    for texts, words in (
        (["kind"], "--fix kind has no '='; write --fix lr=VALUE"),
        (["knid=b"], "--fix knid=b: there is no parameter 'knid'; did you mean 'kind'"),
        (["units=33"], r"--fix units=33: expected an integer in \[16, 64\] in steps of 16"),
        (["kind=a", "kind=b"], "--fix names 'kind' twice"),
    ):
        with pytest.raises(UserError, match=words):
            fixed_of(texts, space)
