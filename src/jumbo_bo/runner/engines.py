"""Where the command of an attempt runs: a process on this machine, or a task of a Ray cluster.

Both leave the attempt's result in its folder. So it is found by whoever looks there later, and an engine has to say
only whether somebody is still at work on it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, Protocol

from jumbo_bo.errors import UserError, first_line
from jumbo_bo.extras import require
from jumbo_bo.learning.elsewhere import Each
from jumbo_bo.runner import supervise
from jumbo_bo.runner.supervise import held, take
from jumbo_bo.waiting import waiting

# Ray's switch for 'no cluster, hence loopback'. It exists on every system and is read when Ray is loaded.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
SHIELD = "block its ports, or start the command in a new process"
STARTING, LEARNING = 120.0, 3600.0  # seconds


class Engine(Protocol):
    @property
    def each(self) -> Each | None: ...  # where nets learn from the old runs; None: in this process
    def start(self, folder: Path) -> None: ...
    def alive(self, folder: Path) -> bool: ...
    def close(self) -> None: ...


class Local:
    """A supervisor process per attempt, which outlives this one."""

    each = None

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path) -> None:
        lock = take(folder / "lock")
        assert lock is not None, "a new folder"
        try:
            child = _supervisor(folder, lock)
        finally:
            os.close(lock)
        self._children = [c for c in [*self._children, child] if c.poll() is None]

    def alive(self, folder: Path) -> bool:
        return held(folder / "lock")

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.returncode = 0  # it outlives us on purpose: nothing to warn about


def _supervisor(folder: Path, lock: int) -> subprocess.Popen[bytes]:
    """It inherits the lock, so there is no moment at which it runs and does not hold it."""
    with (folder / "supervisor.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", supervise.__file__, str(folder), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C in the terminal is for `jumbo run` alone
            pass_fds=(lock,),
        )


class OnRay:
    """A Ray task per attempt. The study's folder must be the same one on every node, as on a shared file system."""

    def __init__(self, address: str | None = None) -> None:
        require("--engine ray", "ray")
        address = address or os.environ.get("RAY_ADDRESS")
        ray = _ray(here=address is None)
        self._ray = ray
        self._tasks: dict[Path, Any] = {}
        ours = signal.getsignal(signal.SIGTERM)
        try:
            _knock(address)
            with waiting(f"Ray {address or 'on this machine'} to start", STARTING):
                ray.init(address or "local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError) as error:
            where = f"at {address!r} " if address else ""
            raise UserError(
                f"there is no Ray cluster {where}({first_line(error)}); start one with `ray start --head`, "
                "or leave --address out to use this machine alone"
            ) from None
        finally:
            if ours is not None and current_thread() is main_thread():
                signal.signal(signal.SIGTERM, ours)  # Ray's own handler would leave the commands running
        if address is None and not ip_address(ray.util.get_node_ip_address()).is_loopback:
            warnings.warn(
                f"Ray was loaded earlier and listens on all interfaces of this machine; {SHIELD}", stacklevel=2
            )
        # Not retried by Ray: a lost attempt is started again, in a folder of its own, as after any other loss.
        self._evaluate = ray.remote(num_cpus=1, max_retries=0)(_evaluate)

    def each(self, work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """A task for each. Nodes without jumbo-bo cannot do it; then it is done here."""
        task = self._ray.remote(num_cpus=1)(work)
        try:
            with waiting("the Ray cluster to learn from the old runs", LEARNING, "then it is done here"):
                return list(self._ray.get([task.remote(*several) for several in arguments], timeout=LEARNING))
        except self._ray.exceptions.RayError as error:
            warnings.warn(f"not done on the Ray cluster ({first_line(error)}), but on this machine", stacklevel=2)
            return [work(*several) for several in arguments]

    def start(self, folder: Path) -> None:
        self._tasks[folder] = self._evaluate.remote(str(folder))

    def alive(self, folder: Path) -> bool:
        """True also when its node is lost but the command still runs there."""
        task = self._tasks.get(folder)
        if task is not None and not self._ray.wait([task], timeout=0)[0]:
            return True
        self._tasks.pop(folder, None)
        return held(folder / "lock")

    def close(self) -> None:
        self._ray.shutdown()


def _ray(here: bool) -> Any:
    """A Ray that is started here lets anybody who reaches its ports run code, so it listens on this machine only."""
    if not here or LOOPBACK in os.environ:
        return import_module("ray")
    os.environ[LOOPBACK] = "0"
    try:
        return import_module("ray")
    finally:
        del os.environ[LOOPBACK]  # the commands of the trials may use Ray in their own way


def _knock(address: str | None) -> None:
    """Ray itself would try for two minutes and then leave the process."""
    found = re.fullmatch(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d+)", address or "")
    if found:
        socket.create_connection((found["host"], int(found["port"])), timeout=10).close()


def _evaluate(folder: str) -> None:
    """On a node of the cluster."""
    lock = take(Path(folder) / "lock", wait=True)  # somebody may look at it at this moment
    assert lock is not None
    try:
        supervisor = _supervisor(Path(folder), lock)
    finally:
        os.close(lock)
    supervisor.wait()
