"""--json: one object on standard output, with the keys that docs/agents.md lists; errors as one on standard error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from widgets import jumbo, lines

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text()
OLD = "dataset,lr,units,loss\n" + "".join(
    f"{'ab'[i % 2]},{10 ** (-4 + i / 10):.6g},{16 * (1 + i % 4)},{i}\n" for i in range(20)
)
TRIAL = {"trial", "state", "value", "params", "started"}


def told(*arguments: str, given: str | None = None) -> dict[str, Any]:
    result = jumbo(*arguments, given=given)
    assert result.exit_code == 0, result.output
    said: dict[str, Any] = json.loads(result.stdout)
    return said


def listed(command: str) -> set[str]:
    """The keys that the page names for a command."""
    (row,) = re.findall(rf"^\| `jumbo {command}` \| (.*) \|$", PAGE, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row)) - {"replace"}


def test_init_import_and_find(folder: Path) -> None:
    (folder / "runs.csv").write_text(OLD)
    (folder / "more.csv").write_text(OLD.replace("a,", "c,").replace("b,", "d,"))
    made = told("init", "runs.csv", "--output", "new.toml", "--json")
    assert set(made) == listed("init")
    assert (made["objective"], made["task"], made["direction"]) == ("loss", "dataset", "minimize")
    assert set(made["columns"]) == {"dataset", "lr", "units", "loss"}
    assert set(told("import", "new.toml", "--json")) == listed("import")
    found = told("find", "new.toml", "more.csv", "--json")
    (row,) = re.findall(r"^\| what `find` found \| (.*) \|$", PAGE, re.MULTILINE)
    assert [set(each) for each in found["found"]] == [set(re.findall(r"`(\w+)`", row))]
    assert set(found) == listed("find")
    assert found["found"][0]["why_not"] == "the same runs as a in the study file and b in the study file"
    (folder / "more.csv").write_text(OLD.replace("0\n", "3\n"))
    added = {"files": ["more.csv"], "objective": "loss", "direction": "minimize", "task": "dataset"}
    assert told("find", "new.toml", "more.csv", "--write", "--json")["written"] == [added]
    empty = told("init", "--output", "template.toml", "--json")
    assert set(empty) == set(made)
    assert empty["objective"] is None


def test_a_study(folder: Path) -> None:
    asked = lines(jumbo("ask", "study.toml", "-n", "2", "--json").stdout)
    assert [set(each) for each in asked] == [{"trial", "params", "why", "predicted"}] * 2
    stored = told("tell", "study.toml", "0", "0.5", "--json")
    assert set(stored) == {"stored", "best"}
    assert set(stored["stored"][0]) == TRIAL | {"why"}
    assert stored["best"] == stored["stored"][0]
    failed = told("tell", "study.toml", "--json", given='{"trial": 1, "failed": true}\n')
    assert failed["stored"][0] | {"state": "fail", "value": None, "error": "reported as failed"} == failed["stored"][0]
    replaced = told("tell", "study.toml", "0", "0.7", "--replace", "--reason", "comma", "--json")
    assert set(replaced) == {"corrections", "best"}
    correction = replaced["corrections"][0]
    assert (correction["what"], correction["was"], correction["value"], correction["why"]) == (
        *("replaced", 0.5, 0.7, "comma"),
    )
    assert replaced["best"]["value"] == 0.7
    forgotten = told("forget", "study.toml", "0", "--reason", "a leak", "--json")
    assert set(forgotten) == listed("forget")
    assert [(entry["what"], entry["trials"]) for entry in forgotten["corrections"]] == [("forgotten", [0])]
    assert forgotten["best"] is None
    status = told("status", "study.toml", "--json")
    assert set(status) == listed("status")
    assert status["corrections"] == [*replaced["corrections"], *forgotten["corrections"]]
    assert told("forget", "study.toml", "0", "--restore", "--json")["corrections"][0]["what"] == "restored"
    explained = told("explain", "study.toml", "0", "--json")
    assert set(explained) == TRIAL | {"why", "reasons"}
    assert explained["reasons"]["params"] == asked[0]["params"]
    assert set(told("report", "study.toml", "--without-old-runs", "--json")) == listed("report")


def test_explain_in_words(folder: Path) -> None:
    (folder / "runs.csv").write_text(OLD)
    study = (folder / "study.toml").read_text().replace('"random"', '"rgpe"')
    (folder / "study.toml").write_text(
        study + '\n[[history]]\nfiles = "runs.csv"\nobjective = "loss"\ntask = "dataset"\n'
    )
    (asked,) = lines(jumbo("ask", "study.toml").stdout)
    jumbo("tell", "study.toml", "0", "0.5")
    said = jumbo("explain", "study.toml", "0").output
    assert asked["why"] in said.replace("\n", " ")
    assert "measured 0.5" in said
    assert "old run of" in said


@pytest.mark.parametrize(
    "arguments",
    [
        "init nothing.csv --output new.toml",
        "import nothing.csv",
        "find study.toml nothing",
        "ask nothing.toml",
        "tell study.toml 9 0.5",
        "forget study.toml 9 --reason x",
        "status nothing.toml",
        "explain study.toml 9",
        "report nothing.toml",
        "run nothing.toml",
    ],
)
def test_errors_are_objects(folder: Path, arguments: str) -> None:
    assert jumbo("ask", "study.toml").exit_code == 0
    plain, result = jumbo(*arguments.split()), jumbo(*arguments.split(), "--json")
    assert (plain.exit_code, result.exit_code, result.stdout) == (1, 1, "")
    (error,) = lines(result.stderr)
    command = arguments.split()[0]
    assert (error["command"], error["exit_code"]) == (command, 1)
    assert "".join(plain.stderr.split()) == "".join(f"jumbo {command}: {error['error']}".split())
