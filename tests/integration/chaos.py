"""Kills `jumbo run` and its helpers at random moments, again and again, and counts what that has cost.

    python tests/integration/chaos.py --kills 1000 --seed 0     (make chaos)

In each round `jumbo run` is started and goes on with one study. Now and then the supervisor or the recorder of a
running command is killed; each command has two of them, of which only one is taken. At the end of the round the run
itself is killed, or it and everything below it at once, or it is asked to stop with SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import optuna
from optuna.trial import TrialState

from jumbo_bo.runner.supervise import held

WORKERS, PER_ROUND = 4, 8
PATIENCE = 600.0  # seconds for a run to start a command: on a busy machine its imports alone may take minutes
STUDY = f"""
name = "killed"
trials = 100000
method = "random"

[space]
x = {{ type = "float", low = 0.0, high = 1.0 }}
n = {{ type = "int", low = 1, high = 8 }}

[objective]
command = ["{sys.executable}", "-I", "-S", "objective.py"]
input = "json"
workers = {WORKERS}
"""
# One write per line with O_APPEND: lines of processes that are killed or run side by side are whole.
OBJECTIVE = """
import json, os, random, sys, time
params, attempt = json.load(sys.stdin), os.path.dirname(os.environ["JUMBO_FOLDER"])
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(what):
    os.write(log, (json.dumps([what, attempt, params]) + "\\n").encode())
note("start")
time.sleep(random.Random(json.dumps(params)).uniform(0.1, 0.5))
print(json.dumps({"value": params["x"] * params["n"]}), flush=True)
note("end")
"""


class Attack:
    def __init__(self, folder: Path, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder, self.rng, self.kills = folder, random.Random(seed), Counter[str]()
        self.limit, self.kept = 2 * WORKERS, dict[int, object]()
        self.hit, self.torn = set[str](), set[str]()  # attempts
        self.changed = 0
        (folder / "study.toml").write_text(STUDY)
        (folder / "objective.py").write_text(OBJECTIVE)

    def round(self) -> None:
        """Some kills, the last of which ends the run."""
        self.limit = len(self.kept) + 4 * WORKERS  # there must be something left to kill
        begun, run = len(self.log()), self.start()
        lock, deadline = self.folder / "killed.runs" / "lock", time.monotonic() + PATIENCE
        while not held(lock) or len(self.log()) == begun:
            assert run.poll() is None, self.output()
            assert time.monotonic() < deadline, f"{self.output()}\n{self.stalled(run, held(lock))}"
            time.sleep(0.01)
        for _ in range(self.rng.randrange(PER_ROUND)):
            time.sleep(self.rng.uniform(0.0, 0.15))
            self.take_a_helper()
        time.sleep(self.rng.uniform(0.0, 0.2))
        if run.poll() is not None:  # it was faster
            assert run.returncode == 0, self.output()
        else:
            self.end(run, self.rng.choice(["run", "everything", "SIGTERM", "SIGINT"]))
        now = self.stored()
        self.changed += sum(now.get(number) != trial for number, trial in self.kept.items())
        self.kept = now

    def end(self, run: subprocess.Popen[bytes], how: str) -> None:
        self.kills[how] += 1
        if how.startswith("SIG"):
            run.send_signal(signal.Signals[how])
            assert run.wait(PATIENCE) in (0, 130), self.output()
            return
        below = self.processes() if how == "everything" else {}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # at once: none of them sees another one die
            for pid in [run.pid, *below]:
                send(pid, number)
        assert run.wait(PATIENCE) == -signal.SIGKILL, self.output()
        # Where all were hit before one of them had written down how the command ended, nobody can know.
        self.torn |= {a for a in below.values() if not (Path(a) / "ended.json").exists()}

    def take_a_helper(self) -> None:
        """The supervisor or the recorder of one command; the other one is left alone from then on."""
        found = {pid: a for pid, a in self.processes(commands=False).items() if a not in self.hit}
        pairs = [(pid, a) for pid, a in found.items() if Counter(found.values())[a] == 2]
        if pairs:
            pid, attempt = self.rng.choice(pairs)
            self.hit.add(attempt)
            self.kills["supervisor or recorder"] += send(pid, signal.SIGKILL)

    def processes(self, commands: bool = True) -> dict[int, str]:
        """Number -> attempt of every supervisor, recorder and command of this study."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):  # no longer there
                words = (process / "cmdline").read_bytes().decode().split("\0")
                if words[3].endswith("supervise.py") and words[4].startswith(str(self.folder)):
                    found[int(process.name)] = words[4]
                elif commands and words[3] == "objective.py" and os.readlink(process / "cwd") == str(self.folder):
                    environment = (process / "environ").read_bytes().decode().split("\0")
                    (own,) = [e.partition("=")[2] for e in environment if e.startswith("JUMBO_FOLDER=")]
                    found[int(process.name)] = str(Path(own).parent)
        return found

    def start(self) -> subprocess.Popen[bytes]:
        code = "from jumbo_bo.cli import main; main()"
        command = [sys.executable, "-c", code, "run", "study.toml", "--trials", str(self.limit)]
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)

    def stalled(self, run: subprocess.Popen[bytes], locked: bool) -> str:
        """Whether a run that does nothing waits for something, or for the processor."""
        words = Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()
        used, load = sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK"), os.getloadavg()[0]
        return (
            f"No command has started or ended for {PATIENCE:.0f} s. The run ({words[0]}, lock held: {locked}) has used "
            f"{used:.1f} s of CPU at a load of {load:.0f}; below it: {self.processes()}"
        )

    def output(self) -> str:
        return (self.folder / "output").read_text()[-5000:]

    def log(self) -> list[tuple[str, str, str]]:
        """What happened, in which attempt, with which parameters."""
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [(what, attempt, json.dumps(params)) for what, attempt, params in lines]

    def trials(self) -> list[optuna.trial.FrozenTrial]:
        try:
            return optuna.load_study(study_name="killed", storage=f"sqlite:///{self.folder}/study.db").get_trials()
        except KeyError:  # killed before it made the study
            return []

    def stored(self) -> dict[int, object]:
        return {t.number: (t.state.name, t.value, t.params) for t in self.trials() if t.state.is_finished()}

    def finish(self) -> dict[str, int]:
        """Lets the study end in peace, and counts."""
        run = self.start()
        assert run.wait(PATIENCE) == 0, self.output()
        now, trials = self.stored(), self.trials()
        again, over = 0, dict[str, bool]()  # configuration -> its command has finished
        for what, attempt, params in self.log():
            if what == "start":
                again += over.get(params, False)
            elif attempt not in self.torn and self.exit_code(Path(attempt)) in (0, None):
                over[params] = True
        wrong = [t for t in trials if t.state != TrialState.COMPLETE or t.value != t.params["x"] * t.params["n"]]
        return {
            "kills": self.kills.total(),
            "trials": len(trials),
            "lost or changed": self.changed + sum(now.get(n) != trial for n, trial in self.kept.items()),
            "doubled": len(trials) - len({json.dumps(t.params) for t in trials}),
            "failed, wrong or left running": len(wrong),
            "finished commands run again": again,
        }

    @staticmethod
    def exit_code(attempt: Path) -> int | None:
        """None when nobody wrote it down."""
        for name in ("result.json", "ended.json"):
            with suppress(FileNotFoundError):
                return int(json.loads((attempt / name).read_text())["exit"])
        return None


def send(pid: int, number: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        attack = Attack(Path(place).resolve(), options.seed)
        while attack.kills.total() < options.kills:
            attack.round()
            print(f"\r{attack.kills.total()} of {options.kills} kills, {len(attack.kept)} trials", end="", flush=True)
        found = attack.finish()
    print("\n" + "\n".join(f"{n:>7}  {what}" for what, n in {**found, **attack.kills}.items()))
    sys.exit(any(found[what] for what in list(found)[2:]))
