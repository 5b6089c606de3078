"""A study, its page, and people who use it as a browser does: they send the forms that the page has."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial
from werkzeug.test import TestResponse

from jumbo_bo.runner.book import opened_book
from jumbo_bo.serve.app import make_app
from jumbo_bo.serve.desk import Desk
from jumbo_bo.serve.guard import Guard
from jumbo_bo.serve.work import Work
from jumbo_bo.study.study_file import load

NASTY = "</dd><script>window.broken=1</script><img src=x onerror='window.broken=1'>\" & {{ 7*7 }}"
STUDY = f"""
name = "coating"
direction = "maximize"
trials = 12
storage = "study.journal"

[space]
temperature = {{ type = "int", low = 60, high = 120, step = 5 }}
additive = {{ type = "categorical", choices = ['''{NASTY}''', "=cmd()"] }}

[limits]
purity = {{ min = 95 }}
"""
SITE = "http://localhost"


class Lab:
    def __init__(self, path: Path, host: str = "127.0.0.1") -> None:
        self.desk, self.work, self.guard = Desk(path), Work(path), Guard(host)
        self.app = make_app(self.desk, self.work, self.guard)
        with opened_book(load(path)):
            pass

    def person(self, name: str = "") -> Person:
        made = Person(self)
        assert made.client.get(f"/enter?token={self.guard.token}").status_code == 200
        if name:
            assert made.send(made.form("/", "/name"), name=name).status_code == 303
        return made

    def ask(self, n: int = 1) -> None:
        """By somebody at the command line."""
        from jumbo_bo.runner import people

        with opened_book(load(self.desk.path)) as book:
            assert len(list(people.ask(book, n, print))) == n

    def trials(self) -> list[FrozenTrial]:
        with self.desk.book() as book:
            return book.all_trials()

    def worked(self) -> None:
        """Until nothing is left to do in the background."""
        end = time.monotonic() + 300
        while self.work.state().working:
            assert time.monotonic() < end
            time.sleep(0.01)


@dataclass
class Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)  # of its buttons


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        its = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes |= set(its)
        if tag == "form":
            self.forms.append(Form(its["action"], actions=[its["action"]]))
        elif tag == "input" and self.forms:
            self.forms[-1].fields[its["name"]] = its.get("value", "")
        elif tag == "button" and "formaction" in its:
            self.forms[-1].actions.append(its["formaction"])

    def handle_data(self, data: str) -> None:
        self.words += data

    def form(self, action: str) -> Form:
        found = next(form for form in self.forms if any(a.partition("?")[0] == action for a in form.actions))
        return Form(action, dict(found.fields))


class Person:
    """One browser."""

    def __init__(self, lab: Lab) -> None:
        self.client = lab.app.test_client()

    def see(self, path: str, status: int = 200) -> Page:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return Page(answer.text)

    def form(self, path: str, action: str) -> Form:
        return self.see(path).form(action)

    def send(self, form: Form, **typed: Any) -> TestResponse:
        return self.client.post(form.action, data=form.fields | typed, headers={"Origin": SITE})

    def do(self, path: str, action: str, **typed: Any) -> TestResponse:
        return self.send(self.form(path, action), **typed)
