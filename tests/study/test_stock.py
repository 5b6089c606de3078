"""candidates in study.toml: a file with the configurations to choose from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_texts import write
from typer.testing import CliRunner

from jumbo_bo import cli
from jumbo_bo.errors import UserError
from jumbo_bo.study.study_file import load

STUDY = """
name = "stock"
method = "gp-ucb"
candidates = "stock.csv"

[space]
a = { type = "float", low = 0.0, high = 1.0 }
kind = { type = "categorical", choices = ["x", "y"] }
"""
TABLE = "a,kind,price\n0.5,x,3\n0.25,y,1\n0.5,x,4\n0.75,y,2\n"


def jumbo(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def test_only_what_is_listed_is_suggested_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, STUDY)
    (tmp_path / "stock.csv").write_text(TABLE)
    asked = [json.loads(line)["params"] for line in jumbo("ask", "study.toml", "-n", "3").splitlines()]
    assert sorted(p["a"] for p in asked) == [0.25, 0.5, 0.75]
    assert {(p["a"], p["kind"]) for p in asked} == {(0.5, "x"), (0.25, "y"), (0.75, "y")}
    assert "all 3 configurations have been tried or are open" in jumbo("ask", "study.toml", code=1)


def test_the_list_is_reduced_to_what_meets_the_constraints(tmp_path: Path) -> None:
    (tmp_path / "stock.csv").write_text(TABLE)
    file = load(write(tmp_path, "constraints = [\"a <= 0.6 or kind == 'x'\"]\n" + STUDY))
    assert file.listed == [{"a": 0.5, "kind": "x"}, {"a": 0.25, "kind": "y"}]
    assert file.n_configurations == 2
    assert load(write(tmp_path, STUDY.replace('candidates = "stock.csv"', ""))).n_configurations is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a,sort\n0.5,x\n", "stock.csv has no column 'kind'"),
        ("a,kind\n0.5,x\n1.5,x\n", "stock.csv row 3: 'a' is 1.5, expected a number in [0, 1]"),
        ("a,kind\n0.5,x\n0.5,\n", "stock.csv row 3: 'kind' is None"),
        ("a,kind\n", "stock.csv has no rows"),
        ("a,kind\n0.9,y\n", "no row meets the constraints; the first does not meet 'a <= 0.6'"),
        (None, "stock.csv"),
    ],
)
def test_a_wrong_list_is_named(tmp_path: Path, table: str | None, message: str) -> None:
    if table is not None:
        (tmp_path / "stock.csv").write_text(table)
    file = load(write(tmp_path, 'constraints = ["a <= 0.6"]\n' + STUDY if "0.9" in (table or "") else STUDY))
    with pytest.raises(UserError) as caught:
        _ = file.listed
    assert message in str(caught.value)
    assert "study.toml, candidates: " in str(caught.value)
