"""Who may use the page.

token    in the address that `jumbo serve` prints; whoever opens it gets a cookie
cookie   signed, for scripts unreadable (HttpOnly), never sent along from another site (SameSite=Strict)
Host     has to name this machine: a foreign name that was made to lead here is refused (DNS rebinding)
Origin   a form has to come from this page
csrf     and has to hold a secret of the session
"""

from __future__ import annotations

import secrets
import socket
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Flask, Response, abort, redirect, request, session, url_for
from werkzeug.wrappers import Response as AnyResponse

OPEN = {"enter", "style_sheet"}  # without a session; they show nothing of the study
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
SMALL = 100_000  # bytes of a form; the longest that a page has are a reason and a few numbers
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers send no Origin either
    "X-Content-Type-Options": "nosniff",
}


def is_loopback(host: str) -> bool:
    return host in LOOPBACK


class Guard:
    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.token = secrets.token_urlsafe(24)
        self._once = {secrets.token_urlsafe(24)}  # other users of this machine see the arguments of a browser

    @property
    def for_browser(self) -> str:
        """A token that works once."""
        return next(iter(self._once))

    def install(self, app: Flask, cookie: str) -> None:
        app.secret_key = secrets.token_bytes(32)  # cookies end with the server
        app.config.update(
            SESSION_COOKIE_NAME=cookie,  # browsers do not tell the ports of a host apart
            SESSION_COOKIE_SAMESITE="Strict",
            MAX_CONTENT_LENGTH=SMALL,
            MAX_FORM_MEMORY_SIZE=SMALL,
        )
        app.before_request(self._check)
        app.after_request(_add_headers)
        app.add_url_rule("/enter", "enter", self._enter)

    def knows(self, name: str | None) -> bool:
        """Whether a Host header names this machine. An address in digits is always ours: only names can be made to lead
        elsewhere."""
        if name is None:
            return False
        if name in LOOPBACK or name == self.host:
            return True
        return not is_loopback(self.host) and (_is_address(name) or name in _own_names())

    def _check(self) -> None:
        if not self.knows(_hostname(f"//{request.host}")):
            abort(403, f"This page is not at {request.host!r}; use the address that `jumbo serve` has printed.")
        if request.endpoint in OPEN:
            return
        if "csrf" not in session:
            abort(403, "Open this page with the address that `jumbo serve` has printed; it ends in a token.")
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            if request.headers.get("Origin") != f"http://{request.host}":
                abort(403, "This form comes from another page. Nothing was stored.")
            if not compare_digest(request.form.get("csrf", "").encode(), session["csrf"].encode()):
                abort(403, "This form is not from your session. Nothing was stored; go back, reload and try again.")

    def _enter(self) -> str | AnyResponse:
        told = request.args.get("token", "").encode()
        once = next((token for token in self._once if compare_digest(told, token.encode())), None)
        if once is not None:
            self._once.discard(once)
        elif not compare_digest(told, self.token.encode()):
            abort(403, "This token is not the one that `jumbo serve` has printed, or was for one use.")
        session.setdefault("csrf", secrets.token_urlsafe(24))
        # Not a redirect: after a click in a mail, browsers would leave out the cookie that they were just given.
        return f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={url_for("show_next")}"><title>jumbo</title>'


def _add_headers(response: Response) -> Response:
    own = response.headers.get("Content-Security-Policy", POLICY)  # of the report
    response.headers.update(HEADERS | {"Content-Security-Policy": own})
    return response


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def back(endpoint: str, anchor: str = "") -> AnyResponse:
    """To a page, after something was stored: reloading that page stores nothing again."""
    return redirect(url_for(endpoint, _anchor=anchor or None), 303)
