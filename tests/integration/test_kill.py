"""`jumbo run` and its helpers, killed at random moments: nothing is lost, and nothing finished is run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos import Attack

pytestmark = pytest.mark.integration

KILLS = 60


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the processes to kill in /proc")
def test_kills_cost_nothing_that_was_finished(tmp_path: Path) -> None:
    attack = Attack(tmp_path, seed=20)
    while attack.kills.total() < KILLS or len(attack.kills) < 5:  # each way to end a run, and helpers
        attack.round()
    found = attack.finish()
    costs = {what: n for what, n in found.items() if what not in ("kills", "trials")}
    assert len(costs) == 4
    assert not any(costs.values()), costs
