"""The stopping rule on the command line and in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from widgets import STUDY, jumbo

STOP = "\n[stop]\ngain = 1e6\nchance = 0.1\n"


def test_run_says_why_it_stopped_and_status_shows_the_chance(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace('method = "random"', 'method = "gp-ucb"') + STOP)
    result = jumbo("run", "study.toml", "--trials", "30")
    assert result.exit_code == 0, result.output
    words = "Stopped: the chance that any configuration improves by more than 1e+06 is less than 1%."
    assert words in result.output
    assert "continue with more trials" not in result.output

    shown = jumbo("status", "study.toml")
    assert "Chance that any configuration beats the best by more than 1e+06: " in shown.output
    assert "(when trial 4 was started)" in shown.output
    found = json.loads(jumbo("status", "study.toml", "--json").output)["remaining"]
    assert (found["gain"], found["trial"]) == (1e6, 4)

    for options in ((), ("--without-old-runs",)):
        assert jumbo("report", "study.toml", *options).exit_code == 0
        page = (folder / "report.html").read_text()
        assert "Chance of a better one" in page
        assert "that any other configuration is better by more than 1e+06" in page


@pytest.mark.parametrize("method", ["gp-ucb", "random"])
def test_the_report_of_a_study_without_a_rule_names_its_own_gain(folder: Path, method: str) -> None:
    (folder / "study.toml").write_text(STUDY.replace('method = "random"', f'method = "{method}"'))
    assert jumbo("run", "study.toml").exit_code == 0
    assert jumbo("report", "study.toml").exit_code == 0
    has = "Chance that any other configuration is " in (folder / "report.html").read_text()
    assert has == (method == "gp-ucb")
    assert "Chance that" not in jumbo("status", "study.toml").output
