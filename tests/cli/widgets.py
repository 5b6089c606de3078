"""A study to run, and the command in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.data.storage import opened
from jumbo_bo.study.study_file import load

STUDY = f"""
name = "widgets"
trials = 4
method = "random"
storage = "study.journal"

[space]
lr = {{ type = "float", low = 1e-5, high = 0.1, log = true }}
units = {{ type = "int", low = 16, high = 64, step = 16 }}

[objective]
command = ["{sys.executable}", "-I", "-S", "train.py"]
input = "json"
value = "loss"
"""
TRAIN = """
import json, os, sys, time
params = json.load(sys.stdin)
time.sleep(60 * os.path.exists("slow"))
print(json.dumps({"loss": params["lr"] * params["units"]}))
"""


def jumbo(*arguments: str, given: str | None = None) -> Result:
    environment = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    result = CliRunner().invoke(cli.app, list(arguments), input=given, env=environment)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def stored() -> list[FrozenTrial]:
    with opened(load("study.toml").address) as storage:
        return optuna.load_study(study_name="widgets", storage=storage).get_trials()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    code = "from jumbo_bo.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
