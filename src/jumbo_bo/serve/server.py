"""The server of the page: where it listens, the address with the token, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from waitress import create_server

from jumbo_bo.data.storage import shown
from jumbo_bo.errors import UserError
from jumbo_bo.runner.book import opened_book
from jumbo_bo.serve.app import make_app
from jumbo_bo.serve.desk import Desk
from jumbo_bo.serve.guard import SMALL, Guard, is_loopback
from jumbo_bo.serve.work import Work
from jumbo_bo.study.study_file import load

STEP = 0.2  # seconds between two looks whether the suggestion at hand is made


def serve(path: Path, host: str, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Until Ctrl-C, which raises KeyboardInterrupt as soon as what was being stored is stored."""
    file = load(path)
    if file.goals:
        raise UserError(
            f"{path} has several goals, and the page has room for one value; use `jumbo ask` and `jumbo tell`"
        )
    with opened_book(file):
        pass  # what is wrong with the study is said before the page is there
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # that a request waits for another is no news
    desk, work, guard = Desk(path), Work(path), Guard(host)
    app = make_app(desk, work, guard, f"jumbo-{port}")
    try:
        server = create_server(app, host=host, port=port, ident=None, max_request_body_size=SMALL)
    except OSError as error:
        raise UserError(
            f"port {port} of {host} cannot be used ({error.strerror}); try --port {port % 65535 + 1}"
        ) from None
    start = f"http://{f'[{host}]' if ':' in host else host}:{port}/enter?token="
    say(f"The page of {file.name}, for whoever has this address (Ctrl-C to stop):")
    say(start + guard.token)
    say(f"What is entered is stored in {shown(file.address)}.")
    work.start()
    if browser and _has_screen():
        Thread(target=webbrowser.open, args=(start + guard.for_browser,), daemon=True).start()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    server.run()  # returns after Ctrl-C, when the requests at hand are answered
    work.stop()
    try:
        if not work.ended(STEP):
            say("Finishing the suggestion at hand; Ctrl-C again does not wait for it.")
        while not work.ended(STEP):
            pass
    except KeyboardInterrupt:
        # Python would wait for the thread, or end it in the middle of foreign code, which some libraries answer with
        # a crash.
        say("Stopped.")
        sys.stdout.flush()
        os._exit(130)
    raise KeyboardInterrupt


def check_host(host: str, network: bool) -> None:
    if not is_loopback(host) and not network:
        raise UserError(
            f"--host {host} lets other machines in, and what they send can be read on the way (no TLS). If you want "
            "that, add --allow-network. A tunnel needs neither: ssh -L 8090:127.0.0.1:8090 THIS-MACHINE"
        )


def _has_screen() -> bool:
    """Without one, a browser that runs in the terminal would be opened."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
