"""Interpreters that do one run after the other. Starting one and compiling its nets takes as long as most runs.

A worker reads one job per line and answers with one line: null, or the traceback of a run that failed. What a run
prints goes to the worker's stderr. A worker that dies takes only its run with it; the next run gets a new one.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import IO, Any

Job = dict[str, Any]

# CPU seconds are only comparable with one thread per process. NPROC sizes XLA's pools.
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC", "POLARS_MAX_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


class Worker:
    def __init__(self, module: str) -> None:
        self.errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            env=os.environ | ONE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def do(self, job: Job) -> str | None:
        """None, or what went wrong."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            error: str | None = json.loads(answer)
            return error
        code = self.process.wait()
        self.errors.seek(0)
        return self.errors.read().strip() or f"the process ended with code {code}"

    def close(self) -> None:
        self.process.communicate()  # closes stdin, which ends the loop of `serve`
        self.errors.close()


@contextmanager
def workers(module: str) -> Iterator[Callable[[Job], str | None]]:
    """A function that does a job in an idle worker or in a new one; threads may call it at the same time."""
    idle: SimpleQueue[Worker] = SimpleQueue()

    def do(job: Job) -> str | None:
        try:
            worker = idle.get_nowait()
        except Empty:
            worker = Worker(module)
        error = worker.do(job)
        if worker.process.poll() is None:
            idle.put(worker)
        else:
            worker.close()
        return error

    try:
        yield do
    finally:
        while not idle.empty():
            idle.get().close()


def serve(do: Callable[[Job], None]) -> None:
    """The other end: does the jobs that come in on stdin until it is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            do(json.loads(line))
            error = None
        except Exception:
            error = traceback.format_exc().strip()
        gc.collect()  # models of a run refer to each other; left alone, those of many runs pile up to gigabytes
        answers.write(json.dumps(error) + "\n")
        answers.flush()
