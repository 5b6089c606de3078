"""`jumbo dashboard` serves the study on loopback, with the real optuna-dashboard."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from optuna.trial import TrialState
from ports import free_port

from jumbo_bo.runner.book import opened_book
from jumbo_bo.study.study_file import load

pytest.importorskip("optuna_dashboard", reason="needs the PyPI package optuna-dashboard")

pytestmark = pytest.mark.integration

STUDY = 'name = "shown"\n[space]\nx = { type = "float", low = 0.0, high = 1.0 }\n'


def test_dashboard_shows_the_study(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    with opened_book(load(tmp_path / "study.toml")) as book:
        book.add(TrialState.COMPLETE, {"x": 0.5}, {}, 0.25)
    port = free_port()
    command = [sys.executable, "-c", "from jumbo_bo.cli import main; main()", "dashboard", "study.toml"]
    process = subprocess.Popen(
        [*command, "--port", str(port)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        studies = json.loads(fetch(f"http://127.0.0.1:{port}/api/studies", process))["study_summaries"]
        assert [s["study_name"] for s in studies] == ["shown"]
        listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        assert f"0100007F:{port:04X}" in listening, "loopback"
        assert f"00000000:{port:04X}" not in listening, "not for other machines"

        second = subprocess.run(
            [*command, "--port", str(port)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert second.returncode == 1
        assert f"port {port} cannot be used" in second.stderr
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert f"http://127.0.0.1:{port}/dashboard" in output
    assert "Traceback" not in output


def fetch(url: str, process: subprocess.Popen[str]) -> bytes:
    deadline = time.monotonic() + 300
    while True:
        try:
            with urllib.request.urlopen(url) as answer:
                return bytes(answer.read())
        except OSError:
            assert process.poll() is None, process.stdout and process.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
