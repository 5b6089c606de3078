"""Real servers, on loopback, and a real browser for the tests: each is started here, in a folder of its own."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Page
from ports import free_port


@pytest.fixture(scope="module")
def only_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new cluster would join one that is there: the processes that share the tests take turns with Ray."""
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretrained nets of a test stay in its own folder."""
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))


def postgres_program(name: str) -> str | None:
    """Debian keeps the server's programs out of the PATH."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


class Server:
    """PostgreSQL in a folder of its own, which can be restarted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.process = folder, free_port(), None
        self.url = f"postgresql+psycopg://jumbo@127.0.0.1:{self.port}/postgres"
        # It refuses to run as root; its folder then belongs to the user the package made.
        root = os.getuid() == 0
        owner = pwd.getpwnam("postgres") if root else pwd.getpwuid(os.getuid())
        for parent in [folder, *folder.parents]:
            if parent.stat().st_uid == os.getuid() and root and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)  # let the other user pass through
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if root else {}
        made = [postgres_program("initdb"), "-D", folder / "data", "-U", "jumbo", "-A", "trust", "--no-sync"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, **self.user)

    def start(self) -> None:
        command = [postgres_program("postgres"), "-D", self.folder / "data", "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*command, "-c", "fsync=off"], stdout=log, stderr=log, cwd=self.folder, **self.user
            )
        _wait(self.port, self.process, self.folder / "log")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)  # a fast shutdown: does not wait for clients
        self.process.wait(300)


def postgresql_server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs the PyPI package psycopg (make test-integration installs it)")
    if postgres_program("initdb") is None or postgres_program("postgres") is None:
        pytest.skip("needs the Debian package postgresql (apt-get install postgresql)")
    # Not in pytest's folder: every pytest that starts closes that to other users.
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of an empty database of a server that lives as long as the tests."""
    for server in postgresql_server():
        yield server.url


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One that a test may stop."""
    yield from postgresql_server()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="jumbo", dbname="postgres", connect_timeout=60).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise TimeoutError(log.read_text())


@pytest.fixture(scope="module")
def chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs the Debian package chromium (apt-get install chromium)")
    return program


@pytest.fixture(scope="module")
def tab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(chromium, tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="module")
def other_tab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Of another person: a browser of its own."""
    with browser(chromium, tmp_path_factory.mktemp("chromium")) as page:
        yield page


@contextmanager
def browser(chromium: str, profile: Path) -> Iterator[Page]:
    # The browser reads from 3 and writes to 4; far from those numbers here, so that neither covers the other.
    pipes = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (*os.pipe(), *os.pipe())]
    their_in, our_out, our_in, their_out = pipes

    def connect() -> None:
        os.dup2(their_in, 3)
        os.dup2(their_out, 4)

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
    arguments += ["--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={profile}"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([chromium, *arguments], preexec_fn=connect, pass_fds=(3, 4), **quiet)
    os.close(their_in)
    os.close(their_out)
    try:
        yield Page(our_out, our_in)
    finally:
        process.terminate()
        process.wait(300)
        os.close(our_out)
        os.close(our_in)
