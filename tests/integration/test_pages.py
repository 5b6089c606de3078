"""Pages whose blocks need a program or a package that the core install does not have."""

from __future__ import annotations

import gc
import re
import shutil
import sys
from pathlib import Path

import pytest

import test_docs
from test_docs import folder_with_runs  # noqa: F401 (a fixture)

pytestmark = pytest.mark.integration


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, unless: str) -> None:
    """Runs a page with the blocks marked `no-run`, except those whose reason contains `unless`."""
    monkeypatch.setattr(test_docs, "NO_RUN", re.compile(rf"<!-- *no-run:[^>]*{unless}.*-->"))
    programs = Path(sys.executable).parent
    test_docs.run_page(test_docs.REPO / "docs" / page, folder, lambda code: test_docs.bash(code, folder, programs))


def test_circuit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("ngspice") is None:
        pytest.skip("needs the Debian package ngspice (apt-get install ngspice)")
    run("circuit.md", tmp_path, monkeypatch, unless="(installs|one design|simulates|takes)")
    assert (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("only_ray")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray(folder_with_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    ray = pytest.importorskip("ray", reason="needs the PyPI package ray[tune]")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        run("ray.md", folder_with_runs, monkeypatch, unless="(installs|cluster)")
    finally:
        ray.shutdown()
        gc.collect()  # the files that Ray leaves open are closed while their warnings are ignored
