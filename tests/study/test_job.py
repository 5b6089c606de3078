"""[objective] of study.toml, and the command of a trial."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_texts import SMALL, error

from jumbo_bo.study.job import Job, render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("workers = 2", ["objective.command is missing", "jumbo ask"]),
        ('command = "python train.py {x}"', ["no shell", 'command = ["python", "train.py", "{x}"]']),
        ('command = ["python", 3]', ["objective.command is ['python', 3]", "a list of strings"]),
        ("command = []", ["objective.command is []", "a list of strings"]),
        ('command = [""]', ["objective.command is ['']"]),
        ('command = ["run", "--x={y}"]', ["{y} in '--x={y}'", "not a parameter", "are x", "literal brace twice"]),
        ('command = ["run", "{"]', ["a lone brace in '{'", "{{ or }}"]),
        ('command = ["run"]\ninput = "stdin"', ["objective.input is 'stdin'", '"arguments", "json"']),
        ('command = ["run"]\nvalue = ""', ["objective.value is ''"]),
        ('command = ["run"]\nworkers = 0', ["objective.workers is 0", "at least 1"]),
        ('command = ["run"]\ntimeout = 0', ["objective.timeout is 0", "above 0"]),
        ('command = ["run"]\nretries = -1', ["objective.retries is -1", "at least 0"]),
        ('command = ["run"]\nretry = 1', ["unknown key 'retry'", "did you mean 'retries'?"]),
    ],
)
def test_mistakes_are_named_with_their_fix(tmp_path: Path, text: str, expected: list[str]) -> None:
    message = error(tmp_path, f"{SMALL}[objective]\n{text}\n")
    assert [part for part in expected if part not in message] == [], message


def test_near_name_of_a_placeholder(tmp_path: Path) -> None:
    study = SMALL + 'units = { type = "int", low = 1, high = 9 }\n[objective]\ncommand = ["run", "{unit}"]\n'
    assert "did you mean 'units'?" in error(tmp_path, study)


PARAMS = {"lr": 1e-5, "units": 16, "activation": "tanh", "fast": True, "shift": -1e-5}
APPENDED = "--lr 1e-05 --units 16 --activation tanh --fast true --shift -0.00001"


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Job(("run", "--lr={lr}", "{units}{activation}")), ["run", "--lr=1e-05", "16tanh"]),
        (Job(("run", "{fast}", "{shift}")), ["run", "true", "-0.00001"]),
        (Job(("run", '{{"lr": {lr}}}', "}}{{")), ["run", '{"lr": 1e-05}', "}{"]),
        (Job(("run", "a b; c $X"), "json"), ["run", "a b; c $X"]),
        (Job(("run", "{units}"), "json"), ["run", "16"]),
        (Job(("run", "{{}}")), ["run", "{}", *APPENDED.split()]),
    ],
)
def test_command_of_a_trial(job: Job, expected: list[str]) -> None:
    assert render(job, PARAMS) == expected


@given(st.floats(-1e9, 1e9), st.integers(-(10**9), 10**9))
def test_numbers_survive_the_command_line(x: float, n: int) -> None:
    words = render(Job(("run",)), {"x": x, "n": n})
    assert (float(words[2]), int(words[4])) == (x, n)


def test_a_choice_that_looks_like_an_option_is_none() -> None:
    assert render(Job(("run",)), {"k": "-rf", "j": "a-b", "x": -1}) == ["run", "--k=-rf", "--j", "a-b", "--x", "-1"]
    code = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--k'); print(p.parse_args().k)"
    for choice in ("-rf", "--force", "-", "-1e-5", "--k=x"):
        command = render(Job((sys.executable, "-c", code)), {"k": choice})
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == choice


def test_argparse_takes_every_number() -> None:
    code = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--x', type=float); print(p.parse_args().x)"
    command = render(Job((sys.executable, "-c", code.replace("{", "{{"))), {"x": -1.5e-7})
    assert float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == -1.5e-7
