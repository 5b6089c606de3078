"""CPU seconds of importing jumbo_bo in fresh interpreters, beside Optuna, and whether jax or torch came along.

python benchmarks/import_time.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

STATEMENTS = ("import jumbo_bo", "from jumbo_bo import Optimizer, Space, History", "import optuna")
PROBE = """
import json, sys, time
start = time.process_time()
{statement}
seconds = time.process_time() - start
print(json.dumps([seconds, [name for name in ("jax", "torch") if name in sys.modules]]))
"""


def measure(statement: str, times: int = 7) -> tuple[float, list[str]]:
    seconds, heavy = [], []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", PROBE.replace("{statement}", statement)], capture_output=True, text=True, check=True
        )
        second, heavy = json.loads(done.stdout)
        seconds.append(second)
    return statistics.median(seconds), heavy


if __name__ == "__main__":
    light = True
    for statement in STATEMENTS:
        seconds, heavy = measure(statement)
        print(f"{statement:<50} {seconds:6.3f} s CPU   jax/torch loaded: {', '.join(heavy) or 'no'}")
        light = light and not (heavy and "jumbo_bo" in statement)
    print("PASS: jumbo_bo loads neither jax nor torch" if light else "FAIL: jumbo_bo loads jax or torch")
    sys.exit(not light)
