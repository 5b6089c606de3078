# ruff: noqa: E402  (thread limits must be set before numpy is imported)
"""How many small changes of the core do the tests notice?

    .venv/bin/pip install mutmut==3.8.1
    .venv/bin/python benchmarks/mutation.py             # a sample of every module, most of an hour on two cores
    .venv/bin/python benchmarks/mutation.py models/gp   # only this one
    .venv/bin/python benchmarks/mutation.py --report    # what is known so far

mutmut makes the mutants: an operator swapped, a number raised by one, an argument left out, a condition turned. Of its
three changes of a text only the first counts, because upper and lower case of a message say nothing about the code;
`__all__`, names of types, zip's `strict` and astype's `copy` do not count either: no result shows them. A
seeded sample of each module is tried; module constants and defaults of fields take part. Every mutant runs in a process
of its own, in a copy of the repository, against the tests named below; one that fails a test or takes LIMIT seconds is
killed. mutmut's own runner is not used: it forks after the tests have run, and jax and Polars do not survive that.

Results are kept in a file and continued; a module whose code changed is drawn anew. Mutants that survive are shown as
differences.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before the server of the forks loads BLAS

import argparse
import difflib
import hashlib
import json
import multiprocessing
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

REPO = Path(__file__).resolve().parent.parent
# CamelCase names at the margin are types.
SILENT = re.compile(
    r"^__all__ = \[.*?^\]|^[A-Z]\w*[a-z]\w* = [^\n]*|,\s*((strict|copy)=\w+)?(?=\))", re.DOTALL | re.MULTILINE
)
LIMIT = 240  # seconds; the slowest list of tests takes a quarter of it
# What starts no thread when it is imported; with it at hand a mutant starts in half a second.
PRELOAD = ["jax", "optuna", "scipy.stats", "scipy.optimize", "sklearn.gaussian_process", "pytest"]
TESTS = {
    "models/gp": ["models/test_gp.py", "methods/test_joint.py"],
    "models/kernel": ["models/test_gp.py", "methods/test_joint.py"],
    "search/acquisition": ["search/test_acquisition.py", "search/test_argmax.py"],
    "search/argmax": ["search/test_argmax.py"],
    "data/warp": ["data/test_warp.py"],
    "space/space": ["space/test_space.py", "space/test_space_values.py"],
    "space/axes": ["space/test_space.py", "space/test_space_values.py"],
    "learning/features": ["learning/test_features.py", "learning/test_row_gp.py"],
    "learning/past_file": ["learning/test_features.py", "learning/test_row_gp.py"],
    "learning/training": ["learning/test_training.py", "learning/test_pretrain.py", "learning/test_ensemble.py"],
    "optimizer": ["test_forget.py", "test_optimizer.py", "test_optimizer_view.py"],
    "trials": ["test_fits.py", "test_optimizer.py", "test_optimizer_view.py"],
    "methods/joint": ["methods/test_joint.py"],
    "methods/mixture": ["methods/test_mixture.py", "methods/test_mixture_failures.py"],
    "models/success": ["models/test_success.py", "methods/test_mixture_failures.py"],
    "remaining": ["test_remaining.py"],
    "learning/priors": ["learning/test_priors.py"],
    "models/population": ["models/test_population.py", "methods/test_mixture.py"],
    "methods/jumbo_printed": ["methods/test_jumbo_printed.py", "methods/test_ablations.py"],
    "studies": ["test_studies.py", "sampler"],
}


@cache
def sample(code: str, n: int) -> tuple[int, list[str]]:
    """How many mutants there are, and the module with one change each of n drawn from them."""
    import libcst
    from mutmut.mutation.file_mutation import create_mutations

    module, mutations, *_ = create_mutations("module.py", code)
    texts: set[int] = set()
    usable = []
    for mutation in mutations:
        original = mutation.original_node
        if not (isinstance(original, libcst.SimpleString) and id(original) in texts):
            usable.append(mutation)
        texts.add(id(original))
    drawn: list[str] = []
    for i in np.random.default_rng(0).permutation(len(usable)):
        mutant = module.deep_replace(usable[i].original_node, usable[i].mutated_node).code  # type: ignore[attr-defined]
        if SILENT.sub("", mutant) != SILENT.sub("", code):
            drawn.append(mutant)
        if len(drawn) == n:
            break
    return len(usable), drawn


def change(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def run_tests(folder: str, tests: list[str]) -> None:
    """In a process of its own; the exit code is pytest's."""
    import pytest

    os.chdir(folder)
    os.environ["PYTHONPATH"] = f"{folder}/src"  # for the processes that tests start
    sys.path.insert(0, f"{folder}/src")
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    wanted = [f"tests/{test}" for test in tests if Path(f"tests/{test}").exists()]
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not interop and not integration", *wanted]))


def killed(context: Any, folder: Path, module: str, mutant: str) -> bool:
    path = folder / "src/jumbo_bo" / f"{module}.py"
    before = path.read_text()
    path.write_text(mutant)
    try:
        process = context.Process(target=run_tests, args=(str(folder), TESTS[module]))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
        return bool(process.exitcode != 0)
    finally:
        path.write_text(before)


def work(modules: list[str], n: int, results: Path, processes: int) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with tempfile.TemporaryDirectory() as temporary:
        folders: SimpleQueue[Path] = SimpleQueue()
        for i in range(processes):
            folder = Path(temporary) / str(i)
            wanted = shutil.ignore_patterns(".*", "__pycache__", "results", "_build")
            shutil.copytree(REPO, folder, ignore=wanted)
            folders.put(folder)
        for module in modules:
            code = (REPO / "src/jumbo_bo" / f"{module}.py").read_text()
            known = {row["key"] for row in read(results)}
            todo = [(key, mutant) for key, mutant in keyed(module, code, n) if key not in known]
            if todo and killed(context, Path(temporary) / "0", module, code):
                print((Path(temporary) / "0/output.txt").read_text())
                sys.exit(f"{module}: {', '.join(TESTS[module])} fail without any change; mend them first")

            def one(item: tuple[str, str]) -> None:
                folder = folders.get()
                dead = killed(context, folder, module, item[1])  # noqa: B023 (the pool ends with the loop's turn)
                folders.put(folder)
                row = {"key": item[0], "module": module, "killed": dead, "change": change(code, item[1])}  # noqa: B023
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")

            with ThreadPoolExecutor(processes) as pool:
                list(pool.map(one, todo))
            print(summary(module, code, n, results), flush=True)


def keyed(module: str, code: str, n: int) -> Iterator[tuple[str, str]]:
    for mutant in sample(code, n)[1]:
        yield hashlib.sha256(f"{module}\n{mutant}".encode()).hexdigest()[:16], mutant


def read(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def summary(module: str, code: str, n: int, results: Path) -> str:
    wanted = {key for key, _ in keyed(module, code, n)}
    last = {row["key"]: row for row in read(results) if row["key"] in wanted}
    dead = sum(row["killed"] for row in last.values())
    return f"| {module} | {sample(code, n)[0]:,} | {len(last)} | {dead} | {dead / max(1, len(last)):.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(TESTS), help=f"of {', '.join(TESTS)}")
    parser.add_argument("-n", type=int, default=40, help="mutants per module")
    parser.add_argument("--results", type=Path, default=Path("mutation.jsonl"), help="file of what was found")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    parser.add_argument("--report", action="store_true", help="only show what is known, with the survivors")
    options = parser.parse_args()
    if options.again:
        rows = [row for row in read(options.results) if row["killed"] or row["module"] not in options.modules]
        options.results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if not options.report:
        work(options.modules, options.n, options.results, options.processes)
        return
    print("| module | mutants | tried | killed | share |\n| --- | --- | --- | --- | --- |")
    for module in options.modules:
        code = (REPO / "src/jumbo_bo" / f"{module}.py").read_text()
        print(summary(module, code, options.n, options.results))
    for row in read(options.results):
        if row["module"] in options.modules and not row["killed"]:
            print(f"\n{row['module']} {row['key']}\n{row['change']}")


if __name__ == "__main__":
    main()
