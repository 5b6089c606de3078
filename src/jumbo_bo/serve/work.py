"""What takes seconds to minutes, done by one thread in the background: suggestions first, then the report.

One at a time: two people who ask at the same moment get different suggestions, as the second is made after the first is
in the study. What waits is bounded. When the page is stopped, the suggestion at hand is finished.
"""

from __future__ import annotations

import sys
import traceback
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Thread

from jumbo_bo.errors import UserError, first_line, printable
from jumbo_bo.runner import people
from jumbo_bo.runner.book import opened_book
from jumbo_bo.serve.desk import KEPT, version
from jumbo_bo.study.study_file import load

MOST = 20  # suggestions that wait at once; nobody runs more experiments side by side by hand


@dataclass(frozen=True)
class Report:
    version: str  # of the study when it was made
    page: str


@dataclass(frozen=True)
class State:
    working: str = ""  # in words, empty when nothing is to be done
    problem: str = ""  # of the last suggestion
    report_problem: str = ""


class Work:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.report: Report | None = None
        self._changed = Condition()
        self._wanted: list[int] = []  # numbers of suggestions, by request
        self._forms: deque[str] = deque(maxlen=KEPT)
        self._report_wanted = ""  # version of the study
        self._report_failed = ""  # version for which it could not be made
        self._note = self._problem = self._report_problem = ""
        self._busy = self._stopping = False
        self._thread = Thread(target=self._run, name="jumbo serve: work", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def suggest(self, n: int, form: str) -> None:
        """A form that comes again asks for nothing more."""
        with self._changed:
            if form in self._forms:
                return
            waiting = sum(self._wanted)
            if not 1 <= n <= MOST - waiting:
                already = f"; {waiting} are waiting already" if waiting else ""
                raise UserError(f"{n} suggestions were asked for, expected 1 to {MOST} at once{already}")
            self._wanted.append(n)
            self._forms.append(form)
            self._problem = ""
            self._changed.notify_all()

    def want_report(self, now: str) -> None:
        """Of this version of the study, unless it is there or cannot be made."""
        with self._changed:
            if now != self._report_failed and (self.report is None or self.report.version != now):
                self._report_wanted = now
                self._changed.notify_all()

    def state(self) -> State:
        with self._changed:
            n = sum(self._wanted)
            what = f"Working on {n} suggestion{'s' if n > 1 else ''}" if n else "Working on the report"
            working = f"{what}. {self._note}".strip() if n or self._busy or self._report_wanted else ""
            return State(working, self._problem, self._report_problem)

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy, self._note = False, ""
                self._changed.wait_for(lambda: self._stopping or self._wanted or self._report_wanted)
                if self._stopping:
                    return
                self._busy, suggesting = True, bool(self._wanted)
            try:
                if suggesting:
                    self._suggest()
                else:
                    self._make_report()
            except UserError as error:
                self._failed(str(error), suggesting)
            except OSError as error:
                self._failed(f"{error.filename or self.path} cannot be used: {error.strerror or error}", suggesting)
            except Exception as error:
                print(printable(traceback.format_exc()), file=sys.stderr, flush=True)
                kind = f"{type(error).__name__}: {first_line(error)}"
                self._failed(f"a bug of jumbo-bo ({kind}); the terminal of `jumbo serve` has the details", suggesting)

    def _suggest(self) -> None:
        """All that the first request wants."""
        with opened_book(load(self.path)) as book:
            for _ in people.ask(book, self._wanted[0], self._say):
                with self._changed:
                    self._wanted[0] -= 1
                    if not self._wanted[0]:
                        self._wanted.pop(0)
                        return
                    if self._stopping:
                        return

    def _make_report(self) -> None:
        from jumbo_bo.runner.reporting import report_of, seen

        file = load(self.path)
        with opened_book(file, create=False) as book:
            its, forgotten = seen(book), book.corrections().forgotten
        now = version(self.path, its.trials, forgotten)
        made = Report(now, report_of(file, its, self._say))
        with self._changed:
            self.report, self._report_wanted, self._report_problem, self._report_failed = made, "", "", ""

    def _say(self, text: str) -> None:
        with self._changed:
            self._note = text

    def _failed(self, text: str, suggesting: bool) -> None:
        with self._changed:
            if suggesting:
                self._wanted.pop(0)
                self._problem = text
            else:
                self._report_failed, self._report_wanted, self._report_problem = self._report_wanted, "", text
