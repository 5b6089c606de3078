"""Peers on the problems of our suites: the same seeds, the same files, so that `jumbo bench report` shows them beside
our methods.

    python benchmarks/peers/setup.py ax
    python benchmarks/peers/run.py ax --suite suzuki --seeds 3 --trials 25

Finished runs are not run again. A run that fails leaves its traceback in OUT/SUITE/failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

from peer import MODULES, Caps, method_name, usual_caps
from setup import interpreter

from jumbo_bo.bench.run import Run, Start, job_of, run_suite, split_names
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.bench.workers import ONE_THREAD


def starter(python: Path, caps: Caps) -> Start:
    """Does a run in a fresh interpreter of the peer's environment. The result is None, or what went wrong."""

    def start(run: Run, out: Path, data: Path | None, command: str) -> str | None:
        job = {**job_of(run, out, data, command), "caps": asdict(caps)}
        words = [str(python), str(Path(__file__).with_name("peer.py")), json.dumps(job)]
        done = subprocess.run(words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else done.stderr.strip() or f"the process ended with code {done.returncode}"

    return start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=list(MODULES))
    parser.add_argument("--suite", choices=list(SUITES), required=True)
    parser.add_argument("--problems", default="", help="separated by commas; default: those of the suite's reports")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--tasks", type=int, help="at most this many old tasks")
    parser.add_argument("--rows", type=int, help="at most this many rows of each")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder of data that are not on PyPI; also $JUMBO_DATA")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    python = interpreter(options.peer)
    if not python.exists():
        parser.error(f"{python} is not there; first: python benchmarks/peers/setup.py {options.peer}")
    suite, usual = SUITES[options.suite], usual_caps(options.peer)
    caps = Caps(options.tasks or usual.tasks, options.rows or usual.rows)
    names = split_names(options.problems) or suite.problems
    if unknown := [name for name in names if not suite.has(name)]:
        parser.error(f"{options.suite} has no problem {', '.join(unknown)}; it has {', '.join(suite.problems)}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    method = method_name(options.peer, caps)
    runs = [Run(options.suite, name, method, seed, options.trials) for seed in seeds for name in names]
    words = f"python benchmarks/peers/run.py {options.peer} --suite {options.suite} --seeds {options.seeds}"
    words += f" --trials {options.trials} --tasks {caps.tasks} --rows {caps.rows}"
    words += f" --first-seed {options.first_seed}" * bool(options.first_seed)
    words += f" --problems {options.problems}" * bool(options.problems)
    failed = run_suite(runs, options.out.absolute(), options.data, words, options.jobs, starter(python, caps))
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
