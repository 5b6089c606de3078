"""Results, failures and corrections from the page; several people at once; nothing twice, nothing lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from optuna.trial import TrialState
from people_of_a_lab import NASTY, Lab, Page

from jumbo_bo.data.readers import measured
from jumbo_bo.errors import UserError
from jumbo_bo.runner import people
from jumbo_bo.serve.desk import KEPT, LONGEST, Form, tell


def test_a_lab_day(lab: Lab) -> None:
    lab.ask(3)
    anna = lab.person("Anna")
    answer = anna.do("/", "/trial/0/tell", **{"value": " 52.3 ", "measured:purity": "96"})
    assert (answer.status_code, answer.location) == (303, "/")
    shown = anna.see("/")
    assert "Trial 0: 52.3 (purity 96), stored." in shown.words
    assert "Best so far: 52.3 in trial 0" in shown.words
    assert "Trial 0: 52.3" not in anna.see("/").words, "said once"
    assert "/trial/0/tell" not in [form.action for form in shown.forms]
    assert anna.do("/", "/trial/1/fail", reason="the tube burst").status_code == 303
    assert anna.do("/", "/trial/2/withdraw", reason="no time").status_code == 303
    first, second, third = lab.trials()
    assert (first.value, measured(first), first.user_attrs["entered by"]) == (52.3, {"purity": 96.0}, "Anna")
    assert (second.state, second.user_attrs["error"]) == (TrialState.FAIL, "the tube burst")
    with lab.desk.book() as book:
        assert book.corrections().forgotten == {third.number}
        assert [t.number for t in book.trials()] == [0, 1]
    told = anna.see("/trials").words
    assert "the tube burst" in told
    assert "withdrawn: no time (Anna)" in told
    assert told.count("Entered by Anna") == 3
    assert "2 of 12 trials finished (1 complete, 1 failed, 1 forgotten)" in told


def test_without_a_name_and_without_what_was_not_measured(lab: Lab) -> None:
    lab.ask()
    lab.person().do("/", "/trial/0/tell", value="1e1")
    (trial,) = lab.trials()
    assert (trial.value, measured(trial)) == (10.0, {})
    assert "entered by" not in trial.user_attrs


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"value": "52,3"}, "the value is '52,3', expected a number such as 52.3; write a point, not a comma"),
        ({"value": ""}, "the value is '', expected a number"),
        ({"value": "high"}, "the value is 'high', expected a number"),
        ({"value": "nan"}, "the value is 'nan', expected a number"),
        ({"value": "1e999"}, "the value is '1e999', expected a number"),
        ({"value": "9" * 5000}, "expected a number"),
        ({"value": NASTY}, "expected a number"),
        ({"value": "1", "measured:purity": "a lot"}, "the value of 'purity' is 'a lot', expected a number"),
        ({"value": "1", "measured:yield": "3"}, "measured has 'yield', but the limits are on purity"),
    ],
)
def test_what_is_no_number_stays_in_the_form(lab: Lab, typed: dict[str, str], expected: str) -> None:
    lab.ask()
    answer = lab.person().do("/", "/trial/0/tell", **typed)
    assert answer.status_code == 400
    page = Page(answer.text)
    assert expected in page.words
    kept = page.form("/trial/0/tell").fields
    assert {name: text for name, text in typed.items() if name in kept} == {
        name: kept[name] for name in typed if name in kept
    }
    assert not {"script", "img"} & set(page.tags[page.tags.index("main") :])
    assert lab.trials()[0].state == TrialState.RUNNING


@pytest.mark.parametrize("action", ["tell", "fail", "withdraw"])
def test_trials_that_are_not_open(lab: Lab, action: str) -> None:
    lab.ask()
    anna = lab.person()
    form = anna.form("/", "/trial/0/tell")
    form.action = f"/trial/7/{action}"
    answer = anna.send(form, value="1", reason="why not")
    assert answer.status_code == 400
    assert "there is no trial 7; open trials: 0" in Page(answer.text).words
    form.action = f"/trial/{'9' * 15}/{action}"
    assert anna.send(form, value="1", reason="why not").status_code == 400


def test_the_second_of_two_people_sees_what_the_first_has_entered_and_loses_nothing(lab: Lab) -> None:
    lab.ask()
    anna, ben = lab.person("Anna"), lab.person(NASTY[:50])
    theirs, his = anna.form("/", "/trial/0/tell"), ben.form("/", "/trial/0/tell")
    assert ben.send(his, **{"value": "61", "measured:purity": "97"}).status_code == 303
    refused = anna.send(theirs, **{"value": "58.4", "measured:purity": "95.5"})
    assert refused.status_code == 409
    page = Page(refused.text)
    assert f"Trial 0 has a result already: 61, entered by {NASTY[:50].strip()} on 2" in page.words
    assert "Yours was not stored" in page.words
    assert "purity = 95.5" in page.words
    assert page.tags.count("script") == 1
    offered = page.form("/trial/0/replace")
    assert offered.fields["value"] == "58.4"
    assert lab.trials()[0].value == 61.0

    assert anna.send(offered, reason="read from the wrong scale").status_code == 303
    (trial,) = lab.trials()
    assert (trial.value, measured(trial)) == (58.4, {"purity": 97.0})
    assert "61 replaced by 58.4" in str(trial.user_attrs["corrected"])
    assert "read from the wrong scale (Anna)" in str(trial.user_attrs["corrected"])


def test_a_failure_does_not_hide_a_result(lab: Lab) -> None:
    lab.ask()
    anna, ben = lab.person("Anna"), lab.person("Ben")
    form = ben.form("/", "/trial/0/fail")
    anna.do("/", "/trial/0/tell", value="61")
    answer = ben.send(form, reason="the tube burst")
    assert answer.status_code == 409
    assert Page(answer.text).form("/trial/0/replace").fields["reason"] == "the tube burst"
    assert lab.trials()[0].value == 61.0


def test_many_at_the_same_moment(lab: Lab) -> None:
    """One of them is stored, and everybody else is told which."""
    lab.ask()
    people_there = [lab.person(f"Person {i}") for i in range(8)]
    forms = [person.form("/", "/trial/0/tell") for person in people_there]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: people_there[i].send(forms[i], value=str(i)), range(8)))
    codes = [answer.status_code for answer in answers]
    assert sorted(codes) == [303] + [409] * 7
    winner = codes.index(303)
    (trial,) = lab.trials()
    assert (trial.value, trial.user_attrs["entered by"]) == (float(winner), f"Person {winner}")
    said = [Page(answer.text).words for answer in answers if answer.status_code == 409]
    assert all(f"has a result already: {winner}, entered by Person {winner} on" in text for text in said)


def test_a_form_that_is_sent_again_does_nothing_again(lab: Lab) -> None:
    lab.ask()
    anna = lab.person()
    form = anna.form("/", "/trial/0/tell")
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: anna.send(form, value="5").status_code, range(4)))
    assert codes == [303] * 4
    correction = anna.form("/trials", "/trial/0/forget")
    assert [anna.send(correction, reason="leaked").status_code for _ in range(2)] == [303, 303]
    with lab.desk.book() as book:
        assert len(book.corrections().entries) == 1
        assert len(book.all_trials()) == 1


def test_forms_are_remembered_for_a_while_only(lab: Lab) -> None:
    lab.desk._done.update({str(i): "" for i in range(KEPT)})
    lab.ask()
    lab.desk.hand_in(tell, Form("new", 0, "1"))
    assert len(lab.desk._done) == KEPT
    assert "0" not in lab.desk._done
    with pytest.raises(UserError, match="incomplete"):
        lab.desk.hand_in(tell, Form("", 0, "1"))


def test_what_a_command_has_entered_is_seen(lab: Lab) -> None:
    lab.ask()
    anna = lab.person()
    form = anna.form("/", "/trial/0/tell")
    with lab.desk.book() as book:
        people.tell(book, [people.Entry("", 0, None, 3.5)])
    answer = anna.send(form, value="4")
    assert answer.status_code == 409
    assert "has a result already: 3.5, entered on 2" in Page(answer.text).words


def test_what_was_typed_is_shown_when_the_storage_is_gone(lab: Lab, folder: Path) -> None:
    lab.ask()
    anna = lab.person()
    form = anna.form("/", "/trial/0/tell")
    (folder / "study.journal").rename(folder / "elsewhere.journal")
    answer = anna.send(form, **{"value": "58.4", "measured:purity": NASTY})
    assert answer.status_code == 503
    page = Page(answer.text)
    assert "study.journal does not exist" in page.words
    assert f"You have typed: value = 58.4, purity = {NASTY}. Before you send it again" in page.words
    assert "script" not in page.tags
    (folder / "elsewhere.journal").rename(folder / "study.journal")
    assert anna.send(form, value="58.4").status_code == 303
    assert lab.trials()[0].value == 58.4


@pytest.fixture
def told(lab: Lab) -> Lab:
    """Three results."""
    lab.ask(3)
    with lab.desk.book() as book:
        people.tell(book, [people.Entry("", i, None, y) for i, y in enumerate((41.5, 523.0, None))])
    return lab


def test_corrections(told: Lab) -> None:
    anna = told.person("Anna")
    assert anna.do("/trials", "/trial/1/replace", value="52.3", reason="decimal point missing").status_code == 303
    assert "Trial 1: 523 replaced by 52.3." in anna.see("/trials").words
    assert anna.do("/trials", "/trial/0/replace-by-failure", reason="").status_code == 303
    assert anna.do("/trials", "/trial/1/forget", reason="contaminated").status_code == 303
    with told.desk.book() as book:
        assert [(t.number, t.value) for t in book.trials()] == [(0, None), (2, None)]
    assert anna.do("/trials", "/trial/1/restore", reason="another sample").status_code == 303
    assert [(t.state.name, t.value) for t in told.trials()] == [("FAIL", None), ("COMPLETE", 52.3), ("FAIL", None)]
    with told.desk.book() as book:
        whys = [entry.why for entry in book.corrections().entries]
    assert whys == ["decimal point missing (Anna)", "(Anna)", "contaminated (Anna)", "another sample (Anna)"]


@pytest.mark.parametrize("action", ["replace", "replace-by-failure", "forget"])
def test_a_correction_of_what_somebody_has_corrected_meanwhile(told: Lab, action: str) -> None:
    anna, ben = told.person("Anna"), told.person("Ben")
    form = ben.form("/trials", f"/trial/1/{action}")
    anna.do("/trials", "/trial/1/replace", value="52.3", reason="point")
    answer = ben.send(form, value="53", reason="comma")
    assert answer.status_code == 409
    page = Page(answer.text)
    assert "Trial 1 was changed in the meantime; it is now: 52.3" in page.words
    assert "523 replaced by 52.3 on" in page.words
    kept = page.form(f"/trial/1/{action}").fields
    assert (kept["value"], kept["reason"]) == ("53", "comma")
    assert told.trials()[1].value == 52.3
    assert ben.send(page.form("/trial/1/replace"), value="53").status_code == 303, "now that he has seen it"


@pytest.mark.parametrize(
    ("action", "typed", "expected"),
    [
        ("forget", {"reason": " "}, "say why it must not count"),
        ("replace", {"value": ""}, "the value is ''"),
        ("replace", {"value": "high"}, "the value is 'high'"),
        ("replace", {"value": "1", "reason": "x" * (LONGEST + 1)}, "a reason has at most"),
        ("restore", {}, "trial 1 is not forgotten; nothing to restore"),
    ],
)
def test_corrections_that_are_refused(told: Lab, action: str, typed: dict[str, str], expected: str) -> None:
    anna = told.person()
    form = anna.form("/trials", "/trial/1/replace")
    form.action = f"/trial/1/{action}"
    answer = anna.send(form, **typed)
    assert answer.status_code == 400
    assert expected in Page(answer.text).words
    with told.desk.book() as book:
        assert book.corrections().entries == ()


def test_unknown_actions(told: Lab) -> None:
    anna = told.person()
    form = anna.form("/trials", "/trial/1/replace")
    for action in ("/trial/1/delete", "/trial/x/replace", "/trial/-1/replace", f"/trial/{'9' * 5000}/replace"):
        form.action = action
        assert anna.send(form, value="1").status_code == 404


def test_what_others_have_written_is_shown_as_it_is(lab: Lab, folder: Path) -> None:
    lab.ask(2)
    anna = lab.person(NASTY[:50])
    anna.do("/", "/trial/0/fail", reason=NASTY)
    anna.do("/trials", "/trial/0/forget", reason=NASTY)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("purity", '"<b>purity</b>"'))
    for path in ("/", "/trials", "/sheet"):
        page = anna.see(path)
        assert page.tags.count("script") == 1
        assert not {"img", "h1 onload"} & set(page.tags)
        assert "onerror" not in page.attributes
        assert "<b>purity</b>" in page.words
    words = anna.see("/trials").words
    assert words.count(NASTY) >= 2
    assert "49" not in NASTY
    assert "{{ 7*7 }}" in words
