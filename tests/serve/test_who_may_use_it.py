"""Tokens, cookies, foreign names and foreign forms: who is let in, and what a refused request does (nothing)."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.trial import TrialState
from people_of_a_lab import SITE, Lab, Page

from jumbo_bo.errors import UserError
from jumbo_bo.serve.guard import HEADERS, SMALL, Guard
from jumbo_bo.serve.server import check_host

PAGES = ["/", "/trials", "/sheet", "/sheet.csv", "/report", "/report/page", "/pulse", "/static/serve.js"]


@pytest.mark.parametrize("path", [*PAGES, "/nothing-here"])
def test_nothing_is_shown_without_the_token(lab: Lab, path: str) -> None:
    answer = lab.app.test_client().get(path)
    assert answer.status_code == 403
    assert "jumbo serve" in answer.text
    assert "coating" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "é", "A" * 100_000])
def test_another_token_opens_nothing(lab: Lab, token: str) -> None:
    client = lab.app.test_client()
    answer = client.get("/enter", query_string={"token": token})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert client.get("/").status_code == 403


def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(lab: Lab) -> None:
    client = lab.app.test_client()
    answer = client.get(f"/enter?token={lab.guard.token}")
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert lab.guard.token not in cookie
    assert client.get("/").status_code == 200


def test_the_token_of_the_browser_that_is_opened_works_once(lab: Lab) -> None:
    """Other users of the machine see the arguments of a program."""
    once = lab.guard.for_browser
    assert once != lab.guard.token
    assert [lab.app.test_client().get(f"/enter?token={once}").status_code for _ in range(2)] == [200, 403]


def test_a_cookie_ends_with_the_server(lab: Lab) -> None:
    anna, later = lab.person(), Lab(lab.desk.path)
    kept = anna.client.get_cookie("jumbo")
    assert kept is not None
    client = later.app.test_client()
    client.set_cookie("jumbo", kept.value)
    assert client.get("/").status_code == 403
    answer = client.post("/trial/0/tell", data={"value": "58.4"}, headers={"Origin": SITE})
    assert answer.status_code == 403
    assert "You have typed: value = 58.4." in answer.text, "it is not lost with the old server"


@pytest.mark.parametrize("path", ["/", "/enter?token=TOKEN", "/style.css", "/nothing-here"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", "192.0.2.7", "", "[", "a@b"]
)
def test_a_foreign_name_is_refused(lab: Lab, host: str, path: str) -> None:
    """A page of evil.example, whose name leads to this machine by now (DNS rebinding)."""
    anna = lab.person()
    answer = anna.client.get(path.replace("TOKEN", lab.guard.token), headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "coating" not in answer.text
    assert "Set-Cookie" not in answer.headers


def test_names_of_this_machine() -> None:
    here = Guard()
    assert all(map(here.knows, ("127.0.0.1", "localhost", "::1")))
    assert not any(map(here.knows, ("192.0.2.7", "lab.example", "", None)))
    network = Guard("0.0.0.0")
    assert all(map(network.knows, ("192.0.2.7", "::1", "2001:db8::7")))
    assert not network.knows("evil.example")
    assert Guard("lab.example").knows("lab.example")


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://localhost:81", "https://localhost"])
def test_a_form_from_elsewhere_stores_nothing(lab: Lab, origin: str | None) -> None:
    lab.ask()
    anna = lab.person()
    form = anna.form("/", "/trial/0/tell")
    answer = anna.client.post(
        form.action, data=form.fields | {"value": "1"}, headers={} if origin is None else {"Origin": origin}
    )
    assert answer.status_code == 403
    assert "Nothing was stored" in answer.text
    assert lab.trials()[0].state == TrialState.RUNNING


def test_a_form_needs_the_secret_of_its_session(lab: Lab) -> None:
    lab.ask()
    anna, ben = lab.person(), lab.person()
    form = anna.form("/", "/trial/0/tell")
    assert form.fields["csrf"] != ben.form("/", "/trial/0/tell").fields["csrf"]
    for wrong in ("", "é", ben.form("/", "/trial/0/tell").fields["csrf"]):
        assert anna.send(form, value="1", csrf=wrong).status_code == 403
    stranger = lab.app.test_client().post(form.action, data=form.fields | {"value": "1"}, headers={"Origin": SITE})
    assert stranger.status_code == 403
    assert lab.trials()[0].state == TrialState.RUNNING
    assert anna.send(form, value="1").status_code == 303
    assert lab.trials()[0].value == 1.0


def test_looking_changes_nothing(lab: Lab) -> None:
    lab.ask()
    anna = lab.person()
    for action in ("/suggest", "/name", "/trial/0/tell", "/trial/0/fail", "/trial/0/forget"):
        assert anna.client.get(action).status_code == 405
    before = lab.desk.version()
    for path in PAGES:
        anna.client.get(path).close()
    lab.worked()
    assert lab.desk.version() == before


def test_every_answer_forbids_what_it_does_not_need(lab: Lab) -> None:
    anna = lab.person()
    for path in ["/", "/trials", "/sheet", "/sheet.csv", "/pulse", "/style.css", "/nothing-here", "/enter"]:
        answer = anna.client.get(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS, path
        answer.close()
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "http" not in policy, "nothing from other hosts"


def test_a_page_has_no_script_of_its_own(lab: Lab) -> None:
    """The policy allows those from files only; what stands in the page would be somebody else's."""
    lab.ask()
    for path in ("/", "/trials", "/sheet", "/report"):
        page = lab.person().see(path)
        assert page.tags.count("script") == 1
        assert not {name for name in page.attributes if name.startswith("on") or name == "style"}


def test_a_form_that_is_too_large(lab: Lab) -> None:
    anna = lab.person()
    assert anna.do("/", "/name", name="x" * (SMALL + 1)).status_code == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "lab.example"])
def test_other_machines_are_let_in_only_when_asked(host: str) -> None:
    with pytest.raises(UserError, match=r"lets other machines in.*--allow-network.*ssh -L"):
        check_host(host, network=False)
    check_host(host, network=True)
    check_host("127.0.0.1", network=False)


def test_errors_are_words(lab: Lab, folder: Path) -> None:
    anna = lab.person()
    (folder / "study.toml").write_text("name = ")
    assert "study.toml" in anna.see("/", status=503).words
    (folder / "study.toml").unlink()
    assert "study.toml does not exist" in anna.see("/trials", status=503).words
    assert "Not Found" in anna.see("/nothing-here", status=404).words


def test_a_bug_shows_no_traceback(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    @lab.app.get("/bug")
    def bug() -> str:
        raise ZeroDivisionError("<b>unexpected</b>")

    answer = lab.person().client.get("/bug")
    assert answer.status_code == 500
    assert "This is a bug of jumbo-bo (ZeroDivisionError: <b>unexpected</b>)" in Page(answer.text).words
    assert "Traceback" not in answer.text
    assert "Traceback" in capsys.readouterr().err, "for the report of the bug"
