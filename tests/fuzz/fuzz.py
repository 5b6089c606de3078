"""Feeds damaged inputs to everything that reads inputs. An error of ours is right; anything else is a finding.

    python tests/fuzz/fuzz.py --seconds 60               every target in turn
    python tests/fuzz/fuzz.py net csv --inputs 2000 --seed 7
    python tests/fuzz/fuzz.py net --seed 7 --only 1234   one input, with its traceback

A finding is an exception that is not a UserError, a message that is too long or has control characters in it, an input
that takes more than SLOW seconds, and the death of the process. The seed and the number of an input make it again.
Inputs run in a process of their own, so that one that kills the reader ends neither the run nor the count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

SLOW = 5.0  # seconds of CPU time for an input of a few kilobytes
STUCK = 600.0  # seconds without an answer: on a busy machine the imports alone may take minutes
LONGEST = 2_000  # characters of a message
BATCH = 500  # inputs of one target in a row
MEMORY = 8 << 30  # bytes that the process may ask for


@dataclass
class Count:
    inputs: int = 0
    read: int = 0  # as if nothing were wrong; often nothing is
    seconds: float = 0.0
    findings: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)  # finding -> number of an input

    def add(self, i: int, outcome: str) -> None:
        self.inputs += 1
        self.read += outcome == "read"
        if outcome not in ("read", "refused"):
            self.findings[outcome] += 1
            self.first.setdefault(outcome, i)


def outcome(target: str, seed: int, i: int, folder: Path) -> str:
    """'read', 'refused', or what was found."""
    from targets import SECRET, TARGETS

    from jumbo_bo.errors import UserError

    start = time.process_time()
    try:
        TARGETS[target](random.Random(f"{seed} {target} {i}"), folder)
        found = "read"
    except UserError as error:
        found, text = "refused", str(error)
        if len(text) > LONGEST:
            found = "a message that is too long"
        elif any(not (c.isprintable() or c in "\n\xa0") for c in text):
            found = "control characters in a message"
        elif SECRET in text:
            found = "a secret in a message"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        frame = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if "jumbo_bo" in f.filename), None)
        place = f" at {Path(frame.filename).name} in {frame.name}" if frame else ""
        found = f"{type(error).__name__}{place}"
    return "slow" if time.process_time() - start > SLOW else found


def work(jobs: Sequence[tuple[str, int, int, int]], at: Path) -> None:
    """In a process of its own: a line for each finding, and the counts of each batch. `at` tells where it is."""
    place = os.open(at, os.O_RDWR)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for target, seed, start, end in jobs:
            began, read = time.process_time(), 0
            for i in range(start, end):
                os.pwrite(place, f"{target} {i}".ljust(40).encode(), 0)
                found = outcome(target, seed, i, Path(folder))
                read += found == "read"
                if found not in ("read", "refused"):
                    print(json.dumps([target, i, found]), flush=True)
            print(json.dumps([target, end - start, read, time.process_time() - began, "done"]), flush=True)


def run(jobs: Sequence[tuple[str, int, int, int]]) -> Iterator[tuple[str, Count]]:
    """The counts of each batch (target, seed, first and last input). What kills the process is a finding."""
    left = list(jobs)
    with TemporaryDirectory() as folder:
        at = Path(folder) / "at"
        while left:
            at.write_text("")
            command = [sys.executable, __file__, "--work", json.dumps(left), "--at", str(at)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            count = Count()
            assert process.stdout is not None
            for line in _lines(process, at):
                target, *rest = json.loads(line)
                if rest[-1] == "done":
                    count.inputs, count.read, count.seconds = rest[0], rest[1], rest[2]
                    left.pop(0)
                    yield target, count
                    count = Count()
                else:
                    count.findings[rest[1]] += 1
                    count.first.setdefault(rest[1], rest[0])
            code = process.wait()
            process.stdout.close()
            if left:  # it died
                target, number = at.read_text().split() or [left[0][0], str(left[0][2])]
                _, seed, start, end = left.pop(0)
                count.add(int(number), "it never ends" if code == -9 else f"the process died ({code})")
                count.inputs = int(number) + 1 - start
                yield target, count
                left.insert(0, (target, seed, int(number) + 1, end))


def _lines(process: subprocess.Popen[str], at: Path) -> Iterator[str]:
    """What it prints. It is killed when the same input keeps it busy for too long."""

    def watch() -> None:
        seen = now = ""
        since = time.monotonic()
        while process.poll() is None and at.exists():
            time.sleep(0.5)
            with suppress(FileNotFoundError):  # all is done
                now = at.read_text()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > STUCK:
                process.kill()

    threading.Thread(target=watch, daemon=True).start()
    assert process.stdout is not None
    yield from process.stdout


def table(counts: dict[str, Count]) -> str:
    lines = [f"{'target':<10} {'inputs':>9} {'read':>9} {'findings':>9} {'CPU s':>8}"]
    total = Count()
    for name, count in counts.items():
        found = sum(count.findings.values())
        lines.append(f"{name:<10} {count.inputs:>9,} {count.read:>9,} {found:>9,} {count.seconds:>8.1f}")
        total.inputs, total.read = total.inputs + count.inputs, total.read + count.read
        total.seconds += count.seconds
        total.findings += count.findings
    found = sum(total.findings.values())
    lines.append(f"{'all':<10} {total.inputs:>9,} {total.read:>9,} {found:>9,} {total.seconds:>8.1f}")
    for name, count in counts.items():
        for what, n in count.findings.most_common():
            lines.append(f"{name}: {n:,} x {what}, e.g. input {count.first[what]}")
    return "\n".join(lines)


def together(parts: Iterator[tuple[str, Count]], counts: dict[str, Count]) -> None:
    for name, part in parts:
        whole = counts.setdefault(name, Count())
        whole.inputs, whole.read = whole.inputs + part.inputs, whole.read + part.read
        whole.seconds += part.seconds
        whole.findings += part.findings
        whole.first = {**part.first, **whole.first}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("targets", nargs="*", help="all by default")
    options.add_argument("--inputs", type=int, help="of each target, instead of a time")
    options.add_argument("--seconds", type=float, default=60.0, help="of CPU time, shared by all targets")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int, help="one input, with its traceback")
    for name in ("--work", "--at"):
        options.add_argument(name, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.work:
        work(json.loads(given.work), Path(given.at))
        return 0
    from targets import TARGETS

    names = given.targets or list(TARGETS)
    if given.only is not None:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            TARGETS[names[0]](random.Random(f"{given.seed} {names[0]} {given.only}"), Path(folder))
        return 0
    counts: dict[str, Count] = {}
    with suppress(KeyboardInterrupt):  # then what was found so far is shown
        attack(names, given, counts)
    print(table(counts))
    return int(any(count.findings for count in counts.values()))


def attack(names: Sequence[str], given: argparse.Namespace, counts: dict[str, Count]) -> None:
    if given.inputs:
        together(run([(name, given.seed, 0, given.inputs) for name in names]), counts)
    else:
        together(run([(name, given.seed, 0, BATCH) for name in names]), counts)
        while (spent := sum(count.seconds for count in counts.values())) < given.seconds:
            # The same time for each: the next batches go to those that have had the least.
            poor = sorted(names, key=lambda name: counts[name].seconds)[: max(1, len(names) // 2)]
            jobs = [(name, given.seed, counts[name].inputs, counts[name].inputs + _more(counts[name])) for name in poor]
            together(run(jobs), counts)
            print(f"{spent:,.0f} of {given.seconds:,.0f} s", file=sys.stderr)


def _more(count: Count) -> int:
    """As many inputs as take about fifteen seconds: a new process takes two until it starts."""
    return max(BATCH, int(15 * count.inputs / max(count.seconds, 1e-3)))


if __name__ == "__main__":
    sys.exit(main())
