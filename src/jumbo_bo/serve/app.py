"""The addresses of the page. What is shown comes from `view.py`, what is stored goes through `desk.py`."""

from __future__ import annotations

import secrets
import sys
import traceback
from dataclasses import replace
from importlib.resources import files
from io import BytesIO
from typing import Any

from flask import Flask, Response, abort, flash, get_flashed_messages, render_template, request, send_file, session
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from jumbo_bo.errors import UserError, brief, first_line, printable
from jumbo_bo.report import POLICY as REPORT_POLICY
from jumbo_bo.runner.people import is_open
from jumbo_bo.serve import desk as does
from jumbo_bo.serve import view
from jumbo_bo.serve.desk import LONGEST, LONGEST_NAME, Action, Conflict, Desk, Form
from jumbo_bo.serve.guard import Guard, back
from jumbo_bo.serve.sheet import as_csv
from jumbo_bo.serve.work import MOST, Work

# The report has scripts of its own. In a sandbox it is a site of its own, too: they reach nothing of this one.
SANDBOX = f"sandbox allow-scripts allow-downloads; frame-ancestors 'self'; {REPORT_POLICY}"
RESULTS: dict[str, Action] = {"tell": does.tell, "fail": does.fail, "withdraw": does.withdraw}
CORRECTIONS: dict[str, Action] = {
    "replace": does.replace,
    "replace-by-failure": does.replace_by_failure,
    "forget": does.forget,
    "restore": does.restore,
}
HIDDEN = {"csrf", "form", "was"}  # fields that nobody types in
Page = str | tuple[str, int] | AnyResponse


def make_app(desk: Desk, work: Work, guard: Guard, cookie: str = "jumbo") -> Flask:
    app = Flask("jumbo_bo.serve")
    guard.install(app, cookie)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals.update(
        form_id=lambda: secrets.token_hex(8), most=MOST, longest=LONGEST, longest_name=LONGEST_NAME
    )
    style = files("jumbo_bo.report").joinpath("page.css").read_text(encoding="utf-8")

    @app.get("/style.css")
    def style_sheet() -> Response:
        own = files("jumbo_bo.serve").joinpath("static/serve.css").read_text(encoding="utf-8")
        return Response(style + own, mimetype="text/css")

    @app.get("/")
    def show_next() -> Page:
        return next_page()

    def next_page(problem: str = "", form: Form | None = None, status: int = 200) -> Page:
        study, found = view.of_study(desk)
        shown = [view.open_one(trial, study.file) for trial in found]
        lost = form is not None and all(form.number != each.number for each in shown)
        told = conflicting(form) if form is not None and lost else None
        return page("next.html", status, study, open=shown, problem=problem, form=form, lost=lost, told=told)

    def conflicting(form: Form) -> str:
        """What a correction of the trial would correct."""
        with desk.book() as book:
            trial = does.find(book, form.number)
        return "" if trial is None or not trial.state.is_finished() else does.state_of(trial)

    @app.post("/suggest")
    def suggest() -> Page:
        n = request.form.get("n", "")
        try:
            if (wanted := _whole(n)) is None:
                raise UserError(f"the number of suggestions is {brief(n)}, expected 1 to {MOST}")
            work.suggest(wanted, request.form.get("form", ""))
        except UserError as error:
            return next_page(str(error), status=400)
        return back("show_next")

    @app.post("/trial/<number>/<what>")
    def hand_in(number: str, what: str) -> Page:
        action, trial = RESULTS.get(what) or CORRECTIONS.get(what), _whole(number)
        if action is None or trial is None:
            abort(404)
        form = form_of(trial)
        try:
            flash(desk.hand_in(action, form))
        except UserError as error:
            status = 409 if isinstance(error, Conflict) else 400
            again = replace(form, id="")
            return next_page(str(error), again, status) if what in RESULTS else trials_page(str(error), again, status)
        return back("show_next") if what in RESULTS else back("show_trials", f"trial-{trial}")

    def form_of(number: int) -> Form:
        sent = request.form
        quantities = {key.removeprefix("measured:"): text for key, text in sent.items() if key.startswith("measured:")}
        texts = {name: sent.get(name, "").strip() for name in ("value", "reason", "was")}
        return Form(sent.get("form", ""), number, measured=quantities, by=session.get("name", ""), **texts)

    @app.get("/trials")
    def show_trials() -> Page:
        return trials_page()

    def trials_page(problem: str = "", form: Form | None = None, status: int = 200) -> Page:
        at = max(1, request.args.get("page", 1, type=int))
        study, found, pages = view.of_trials(desk, at)
        return page("trials.html", status, study, found=found, at=at, pages=pages, problem=problem, form=form)

    @app.get("/sheet")
    def show_sheet() -> Page:
        study, found = view.of_study(desk)
        return page("sheet.html", 200, study, open=[view.open_one(trial, study.file) for trial in found])

    @app.get("/sheet.csv")
    def csv() -> Page:
        with desk.book() as book:
            made = as_csv(book.file, filter(is_open, book.trials()))
        return send_file(BytesIO(made), "text/csv", as_attachment=True, download_name=f"{book.file.name}-next.csv")

    @app.get("/report")
    def show_report() -> Page:
        study, _ = view.of_study(desk)
        work.want_report(study.version)
        return page("report.html", 200, study, report=work.report, problem=work.state().report_problem)

    @app.get("/report/page")
    def report() -> Page:
        made = work.report or abort(404, "The report is not made yet.")
        return Response(made.page, headers={"Content-Security-Policy": SANDBOX})

    @app.get("/pulse")
    def pulse() -> dict[str, str]:
        """What an open page asks now and then."""
        now = desk.version()
        if "report" in request.args:
            work.want_report(now)
        its, made = work.state(), work.report
        return {"study": now, "report": made.version if made else "", "working": its.working, "problem": its.problem}

    @app.post("/name")
    def name() -> Page:
        session["name"] = " ".join(request.form.get("name", "").split())[:LONGEST_NAME]
        return back("show_next")

    def page(template: str, status: int, study: view.Study, **shown: Any) -> Page:
        said = get_flashed_messages()
        return render_template(template, study=study, work=work.state(), said=said, **shown), status

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Page:
        return message(error.name, str(error.description or ""), error.code or 500)

    @app.errorhandler(UserError)
    def explained(error: UserError) -> Page:
        return message("This does not work now", str(error), 503)

    @app.errorhandler(OSError)
    def unusable(error: OSError) -> Page:
        text = f"{error.filename or desk.path} cannot be used: {error.strerror or error}"
        return message("This does not work now", text, 503)

    @app.errorhandler(Exception)
    def bug(error: Exception) -> Page:
        print(printable(traceback.format_exc()), file=sys.stderr, flush=True)
        text = f"This is a bug of jumbo-bo ({type(error).__name__}: {first_line(error)}). "
        return message("Something is wrong", text + "The terminal of `jumbo serve` has the details.", 500)

    def message(title: str, text: str, status: int) -> Page:
        """With what was typed, unless the form is too large to be read. After a restart of the server, say."""
        sent = request.form.items() if request.method == "POST" and status != 413 else ()
        typed = [(name.removeprefix("measured:"), its) for name, its in sent if name not in HIDDEN and its]
        return render_template("message.html", title=title, text=text, typed=typed), status

    return app


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
