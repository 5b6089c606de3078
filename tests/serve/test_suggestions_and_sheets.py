"""Suggestions and reports in the background, the sheet and its table for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from people_of_a_lab import NASTY, STUDY, Lab, Page

from jumbo_bo.serve.sheet import cell
from jumbo_bo.serve.work import MOST


def settings(lab: Lab) -> list[tuple[object, ...]]:
    return [tuple(t.params.values()) for t in lab.trials()]


def test_two_people_ask_at_once(lab: Lab) -> None:
    anna, ben = lab.person(), lab.person()
    forms = [person.form("/", "/suggest") for person in (anna, ben)]
    assert [person.send(form, n="2").status_code for person, form in zip((anna, ben), forms, strict=True)] == [303] * 2
    lab.worked()
    assert len(settings(lab)) == len(set(settings(lab))) == 4
    page = anna.see("/")
    assert [form.action for form in page.forms if form.action.endswith("/tell")] == [
        f"/trial/{i}/tell" for i in range(4)
    ]
    assert all(t.user_attrs["why"] in page.words for t in lab.trials())


def test_the_same_form_asks_once(lab: Lab) -> None:
    anna = lab.person()
    form = anna.form("/", "/suggest")
    assert [anna.send(form, n="1").status_code for _ in range(3)] == [303] * 3
    lab.worked()
    assert len(lab.trials()) == 1


@pytest.mark.parametrize("n", ["0", "-1", "1.5", "", "many", "9" * 5000, str(MOST + 1), "²"])
def test_how_many(lab: Lab, n: str) -> None:
    answer = lab.person().do("/", "/suggest", n=n)
    assert answer.status_code == 400
    assert f"expected 1 to {MOST}" in Page(answer.text).words
    assert lab.trials() == []


def test_what_waits_is_bounded(folder: Path) -> None:
    lab = Lab(folder / "study.toml")  # nobody is at work
    anna = lab.person()
    assert anna.do("/", "/suggest", n=str(MOST)).status_code == 303
    assert f"Working on {MOST} suggestions" in anna.see("/").words
    answer = anna.do("/", "/suggest", n="1")
    assert answer.status_code == 400
    assert f"{MOST} are waiting already" in Page(answer.text).words


def test_why_there_is_no_suggestion(folder: Path) -> None:
    text = re.sub("additive = .*\n", "", STUDY)
    text = re.sub("temperature = .*", 'temperature = { type = "int", low = 1, high = 2 }', text)
    (folder / "study.toml").write_text(text)
    lab = Lab(folder / "study.toml")
    lab.work.start()
    anna = lab.person()
    anna.do("/", "/suggest", n="3")
    lab.worked()
    assert len(set(settings(lab))) == 2
    assert "not made: all 2 configurations have been tried or are open" in anna.see("/").words
    assert "all 2 configurations" in anna.client.get("/pulse").json["problem"]
    lab.work.stop()
    while not lab.work.ended(1.0):
        pass


def test_a_bug_in_the_background_ends_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    anna = lab.person()
    with monkeypatch.context() as patched:
        patched.setattr("jumbo_bo.serve.work.load", lambda path: 1 / 0)
        anna.do("/", "/suggest", n="1")
        lab.worked()
    assert "a bug of jumbo-bo (ZeroDivisionError" in anna.see("/").words
    assert "Traceback" in capsys.readouterr().err
    anna.do("/", "/suggest", n="1")
    lab.worked()
    assert len(lab.trials()) == 1
    assert "a bug" not in anna.see("/").words


def test_a_stopped_page_leaves_no_half_of_a_suggestion(folder: Path) -> None:
    lab = Lab(folder / "study.toml")
    lab.work.suggest(MOST, "a form")
    lab.work.start()
    lab.work.stop()
    while not lab.work.ended(1.0):
        pass
    assert len(lab.trials()) < MOST
    assert all(t.params for t in lab.trials())


def test_the_report_follows_the_study(lab: Lab) -> None:
    lab.ask(2)
    anna = lab.person()
    assert "The report is being made" in anna.see("/report").words
    lab.worked()
    first = anna.client.get("/report/page")
    assert first.headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "frame-ancestors 'self'" in first.headers["Content-Security-Policy"]
    assert "<title>coating: study report" in first.text
    assert "iframe" in anna.see("/report").tags
    made = anna.client.get("/pulse?report=1").json
    assert made["report"] == made["study"]
    lab.worked()
    assert anna.client.get("/report/page").text == first.text

    anna.do("/", "/trial/0/tell", value="52.3")
    later = anna.client.get("/pulse?report=1").json
    assert later["report"] != later["study"] != made["study"]
    lab.worked()
    assert "52.3" in anna.client.get("/report/page").text


def test_a_report_that_cannot_be_made(lab: Lab, folder: Path) -> None:
    (folder / "study.toml").write_text(f'{STUDY}\n[[history]]\nfiles = "old.csv"\n')
    anna = lab.person()
    anna.see("/report")
    lab.worked()
    lab.work.stop()
    while not lab.work.ended(1.0):
        pass
    page = anna.see("/report")
    assert "The report was not made" in page.words
    assert "old.csv" in page.words
    assert lab.work.state().working == "", "it is not tried again until something has changed"


def test_a_file_named_after_the_study(lab: Lab, folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace('"coating"', '"Prüfstand 試験"'))
    lab = Lab(folder / "study.toml")
    name = "filename*=UTF-8''Pr%C3%BCfstand%20%E8%A9%A6%E9%A8%93-next.csv"
    assert name in lab.person().client.get("/sheet.csv").headers["Content-Disposition"]


def test_the_table_for_a_spreadsheet(lab: Lab) -> None:
    lab.ask(6)
    anna = lab.person()
    anna.do("/", "/trial/1/fail", reason="burst")
    answer = anna.client.get("/sheet.csv")
    assert answer.headers["Content-Disposition"] == "attachment; filename=coating-next.csv"
    assert answer.mimetype == "text/csv"
    head, *rows = csv.reader(io.StringIO(answer.data.decode("utf-8-sig")))
    assert head == ["trial", "temperature", "additive", "expected", "low", "high", "value", "purity", "notes"]
    assert [row[0] for row in rows] == ["0", "2", "3", "4", "5"]
    assert {row[2] for row in rows} <= {"'=cmd()", NASTY}
    assert "'=cmd()" in {row[2] for row in rows}
    assert all(row[6:] == ["", "", ""] for row in rows)


@given(st.text(), st.floats(), st.integers())
def test_no_cell_is_a_formula(text: str, x: float, n: int) -> None:
    assert not str(cell(text)).lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert str(cell(text)).removeprefix("'") in (text, text.removeprefix("'"))
    assert cell(n) == n
    assert cell(x) == x or cell(x) == ""


def test_the_sheet_has_room_for_what_is_measured(lab: Lab) -> None:
    assert "No experiment is open" in lab.person().see("/sheet").words
    lab.ask(2)
    words = lab.person().see("/sheet").words
    assert "purity >= 95" in words
    assert all(str(t.params["temperature"]) in words for t in lab.trials())


def test_pages_of_trials(lab: Lab) -> None:
    from optuna.trial import TrialState

    with lab.desk.book() as book:
        for i in range(101):
            book.add(TrialState.COMPLETE, {"temperature": 60 + 5 * (i % 13), "additive": NASTY}, {}, float(i))
    anna = lab.person()
    first, second = anna.see("/trials"), anna.see("/trials?page=2")
    assert [len([f for f in page.forms if f.action.startswith("/trial/")]) for page in (first, second)] == [100, 1]
    assert second.form("/trial/0/replace")
    form = second.form("/trial/0/replace")
    form.action += "?page=2"
    answer = anna.send(form, value="high")
    assert Page(answer.text).form("/trial/0/replace").fields["value"] == "high"
    for page in ("0", "-1", "x", "99"):
        anna.see(f"/trials?page={page}")
