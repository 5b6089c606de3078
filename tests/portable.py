"""The numeric tests as other machines run them: other processors, two BLAS threads, other Pythons.

    make test-portable

OpenBLAS, numpy and XLA each choose their machine code by the processor they find, so sums are added up in another order
elsewhere and results differ in their last bits. Each run below makes them choose as on an older or newer processor, as
far as this one can; a processor whose BLAS code is that of one already run is left out. The files that could notice a
second BLAS thread run with two as well; `ask` and `pretrain` use one. Every other Python of the supported range that is
found here gets an environment of its own in .venv.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
THREADED = [
    "models/test_gp.py",
    "learning/test_row_gp.py",
    "learning/test_features.py",
    "test_optimizer.py",
    "test_optimizer_view.py",
    "models/test_blr.py",
]
OTHERS = [
    "search/test_acquisition.py",
    "search/test_argmax.py",
    "data/test_warp.py",
    "learning/test_training.py",
    "learning/test_pretrain.py",
    "learning/test_ensemble.py",
    "learning/test_priors.py",
    "models/test_population.py",
    "methods/test_mixture.py",
    "methods/test_mixture_failures.py",
    "models/test_success.py",
    "models/test_joint_posterior.py",
    "learning/test_heads.py",
    "test_fits.py",
    "test_many_trials.py",
    "test_remaining.py",
    "test_ordinary_use.py",
]
# OpenBLAS's name of a processor, and the newest instructions that XLA may use there.
PROCESSORS = {"Prescott": "SSE4_2", "Haswell": "AVX2", "SkylakeX": "AVX512", "Zen": "AVX2"}
PROBE = (
    "import numpy, scipy.linalg, threadpoolctl;"
    "print({i['architecture'] for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas'})"
)
NEWER = "from numpy._core._multiarray_umath import __cpu_dispatch__ as d; print(*d)"


@dataclass(frozen=True)
class Run:
    name: str
    python: str
    files: list[str]
    environment: dict[str, str] = field(default_factory=dict)


def output(python: str, code: str, environment: dict[str, str] | None = None) -> str | None:
    """What the code prints; None when it cannot run."""
    done = subprocess.run([python, "-c", code], env=os.environ | (environment or {}), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def processors() -> list[Run]:
    runs, seen = [], set[str | None]()
    for name, instructions in PROCESSORS.items():
        environment = {"OPENBLAS_CORETYPE": name, "XLA_FLAGS": f"--xla_cpu_max_isa={instructions}"}
        if name == "Prescott":
            environment["NPY_DISABLE_CPU_FEATURES"] = output(sys.executable, NEWER) or ""
        code = output(sys.executable, PROBE, environment)
        if code is None or code in seen:
            print(f"{name}: {'cannot run here' if code is None else f'the same BLAS code as another, {code}'}")
            continue
        seen.add(code)
        for threads, files in (("1", THREADED + OTHERS), ("2", THREADED)):
            label = f"{name}, {threads} BLAS thread{'s' * (threads == '2')}"
            runs.append(Run(label, sys.executable, files, environment | {"OPENBLAS_NUM_THREADS": threads}))
    return runs


def pythons() -> dict[str, str]:
    """Version -> program, of those in the PATH and in pyenv's folder."""
    oldest = tuple(
        map(int, re.findall(r'requires-python = ">=(\d+)\.(\d+)"', (REPO / "pyproject.toml").read_text())[0])
    )
    named = [shutil.which(f"python3.{minor}") for minor in range(30)]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[str, str] = {}
    for program in [*filter(None, named), *map(str, sorted(root.glob("versions/*/bin/python3")))]:
        version = output(program, "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])")
        if version and tuple(map(int, version.split("."))) >= oldest:
            found.setdefault(version, program)
    found.pop("{}.{}".format(*sys.version_info), None)
    return found


def installed(version: str, program: str) -> Run:
    folder = REPO / ".venv" / f"portable-{version}"
    python = str(folder / "bin/python")
    subprocess.run([program, "-m", "venv", str(folder)], check=True)
    packages = ["-e", str(REPO), "pytest", "hypothesis", "scikit-learn"]
    quiet = ["-qq", "--no-compile", "--disable-pip-version-check", "--root-user-action=ignore"]
    subprocess.run([python, "-m", "pip", "install", *quiet, *packages], check=True)
    return Run(f"Python {version}", python, THREADED)


def passed(run: Run) -> bool:
    files = [str(REPO / "tests" / file) for file in run.files]
    done = subprocess.run(
        [run.python, "-m", "pytest", "-p", "no:cacheprovider", *files],
        cwd=REPO,
        env=os.environ | run.environment,
        capture_output=True,
        text=True,
    )
    summary = done.stdout.strip().splitlines()[-1:] or [done.stderr]
    print(f"{run.name}: {'passed' if done.returncode == 0 else 'FAILED'} ({summary[0]})", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr)
    return done.returncode == 0


def main() -> None:
    """The environments are made while the first tests run."""
    with ThreadPoolExecutor(2) as workers, ThreadPoolExecutor(1) as installer:
        made = [installer.submit(installed, *found) for found in pythons().items()]
        results = [workers.submit(passed, run) for run in processors()]
        results += [workers.submit(passed, future.result()) for future in made]
        failed = sum(not result.result() for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")  # runs, not tests
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
