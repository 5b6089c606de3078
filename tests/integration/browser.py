"""A tab of Chromium.

It is driven through its own pipe (--remote-debugging-pipe: JSON messages that end in a zero byte), so the tests need
nothing but the browser.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import time
from pathlib import Path
from typing import Any

DEADLINE = 300.0  # seconds for any answer


class Page:
    """One tab, and what happened in it."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._buffer = send, receive, b""
        self._ids = itertools.count(1)
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._receive, 1 << 20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def show(self, path: Path | str, width: int = 1200, scheme: str = "light") -> None:
        """Opens a file, or an address, and waits until it is drawn."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.prefer(scheme)
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.wait("document.readyState === 'complete' && !!document.querySelector('main')")
        self.settle()

    def wait(self, condition: str) -> None:
        """Until it holds, also when the page is left for another one meanwhile."""
        end, truth = time.monotonic() + DEADLINE, False
        while not truth:
            assert time.monotonic() < end, f"never true: {condition}; the page: {self.run('document.body.innerText')}"
            time.sleep(0.05)
            answer = self.call("Runtime.evaluate", expression=condition, returnByValue=True)
            truth = "exceptionDetails" not in answer and bool(answer["result"].get("value"))

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def settle(self) -> None:
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")

    def seen(self, method: str) -> list[dict[str, Any]]:
        self.call("Runtime.evaluate", expression="0")  # everything before has been reported
        return [e["params"] for e in self.events if e.get("method") == method]

    def complaints(self) -> list[Any]:
        return [
            *self.seen("Runtime.exceptionThrown"),
            *(e for e in self.seen("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")),
            *(e["entry"] for e in self.seen("Log.entryAdded")),
        ]

    def requests(self) -> list[str]:
        urls = [e["request"]["url"] for e in self.seen("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]
