"""A Ray that `--engine ray` starts itself can be reached from this machine only."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="needs the PyPI package ray (make test-integration installs it)")

pytestmark = pytest.mark.integration

CODE = """
import os
from jumbo_bo.runner.engines import LOOPBACK, OnRay

engine = OnRay()
assert LOOPBACK not in os.environ  # the commands of the trials decide for themselves
import psutil  # comes with Ray
ours = psutil.Process().children(recursive=True) + [psutil.Process()]
found = {c.laddr.ip for p in ours for c in p.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
print("listens on", *sorted(found), flush=True)
engine.close()
"""


def test_nobody_else_can_reach_it(only_ray: None) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    _, _, *found = next(line for line in done.stdout.splitlines() if line.startswith("listens on")).split()
    assert found
    assert all(address in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for address in found), found
