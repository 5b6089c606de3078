"""Where results and corrections are handed in: one after the other, each form once, and never over another's entry."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from optuna.trial import FrozenTrial

from jumbo_bo.data.corrections import CORRECTED, shown
from jumbo_bo.data.limits import in_words
from jumbo_bo.data.readers import measured
from jumbo_bo.errors import InputError, UserError, brief, clip
from jumbo_bo.runner import people
from jumbo_bo.runner.book import BY, ERROR, Book, opened_book
from jumbo_bo.studies import broken
from jumbo_bo.study.study_file import load

KEPT = 1000  # forms whose outcome is remembered; a form that is sent twice is so within seconds
LONGEST = 500  # characters of a reason
LONGEST_NAME = 60


class Conflict(UserError):
    """Somebody else was faster."""


@dataclass(frozen=True)
class Form:
    """What a person has sent, as it was typed."""

    id: str
    number: int
    value: str = ""
    measured: Mapping[str, str] = field(default_factory=dict)  # by limit
    reason: str = ""
    by: str = ""
    was: str = ""  # what a correction corrects, as the page has shown it


Action = Callable[[Book, Form], str]


class Desk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = Lock()
        self._done: OrderedDict[str, str] = OrderedDict()  # id of a form -> what was said

    @contextmanager
    def book(self) -> Iterator[Book]:
        """The study as it is now, by the study file as it is now."""
        with opened_book(load(self.path), create=False) as book:
            yield book

    def hand_in(self, action: Action, form: Form) -> str:
        """Does what a form is for and says what was done. A form that comes again gets the same answer."""
        if len(form.reason) > LONGEST or len(form.by) > LONGEST_NAME:
            raise UserError(f"a reason has at most {LONGEST} characters, a name {LONGEST_NAME}; nothing was stored")
        if not form.id:
            raise UserError("the form is incomplete; reload the page and try again")
        with self._writing:
            if form.id not in self._done:
                with self.book() as book:
                    said = action(book, form)
                self._done[form.id] = said
                if len(self._done) > KEPT:
                    self._done.popitem(last=False)
            return self._done[form.id]

    def version(self) -> str:
        with self.book() as book:
            return version(self.path, book.all_trials(), book.corrections().forgotten)


def version(path: Path, trials: list[FrozenTrial], forgotten: frozenset[int]) -> str:
    """Another text whenever the study or its file has changed."""
    told = [(t.number, t.state.name, t.values, t.params, t.user_attrs.get(CORRECTED)) for t in trials]
    return hashlib.sha256(repr((told, sorted(forgotten))).encode() + path.read_bytes()).hexdigest()[:16]


# What forms are for


def tell(book: Book, form: Form) -> str:
    _check_open(book, form)
    quantities = {
        name: number_in(text, f"value of {brief(name)}") for name, text in form.measured.items() if text.strip()
    }
    value = number_in(form.value, "value")
    (told,) = people.tell(book, [people.Entry("", form.number, None, value, quantities, by=form.by)])
    outside = broken(told, book.file.space)
    more = (
        f" It does not meet {', '.join(outside)}: it is learned from, and not counted as the best." if outside else ""
    )
    found = in_words(book.file.limits, measured(told))
    return f"Trial {form.number}: {shown(told.value)}{found and f' ({found})'}, stored.{more}"


def fail(book: Book, form: Form) -> str:
    _check_open(book, form)
    people.tell(book, [people.Entry("", form.number, None, None, reason=form.reason, by=form.by)])
    return f"Trial {form.number}: failed, stored."


def withdraw(book: Book, form: Form) -> str:
    _check_open(book, form)
    people.withdraw(book, form.number, _needed(form.reason, "it will not be run"), form.by)
    return f"Trial {form.number}: withdrawn. Its setting may be suggested again."


def replace(book: Book, form: Form) -> str:
    return _replaced(book, form, number_in(form.value, "value"))


def replace_by_failure(book: Book, form: Form) -> str:
    return _replaced(book, form, None)


def _replaced(book: Book, form: Form, value: float | None) -> str:
    _check_unchanged(book, form)
    (made,) = people.replace(book, [people.Entry("", form.number, None, value)], _signed(form.reason, form.by))
    return f"Trial {form.number}: {shown(made.was)} replaced by {shown(made.value)}."


def forget(book: Book, form: Form) -> str:
    reason = _needed(form.reason, "it must not count")
    _check_unchanged(book, form)
    book.forget([form.number], _signed(reason, form.by))
    return f"Trial {form.number}: forgotten."


def restore(book: Book, form: Form) -> str:
    book.restore([form.number], _signed(form.reason, form.by))
    return f"Trial {form.number}: counts again."


# What they need


def number_in(text: str, what: str) -> float:
    try:
        return people.number_of(text.strip())
    except UserError:
        comma = "; write a point, not a comma" if text.count(",") == 1 and _is_number(text.replace(",", ".")) else ""
        raise UserError(f"the {what} is {brief(text.strip())}, expected a number such as 52.3{comma}") from None


def state_of(trial: FrozenTrial) -> str:
    """What a correction of it corrects."""
    return repr((trial.state.name, trial.value, trial.user_attrs.get(CORRECTED)))


def entered(trial: FrozenTrial) -> str:
    """What is stored as the result, by whom and when, and what was corrected."""
    ended = trial.datetime_complete
    what = shown(trial.value) if trial.value is not None else "failed"
    why = trial.user_attrs.get(ERROR, "")
    by = f" by {trial.user_attrs[BY]}" if BY in trial.user_attrs else ""
    when = f", entered{by} on {ended:%Y-%m-%d %H:%M}" if ended else ""
    corrected = "".join(f"; {text}" for text in trial.user_attrs.get(CORRECTED, ()))
    return f"{what}{f' ({clip(str(why), LONGEST)})' if why and trial.value is None else ''}{when}{corrected}"


def find(book: Book, number: int) -> FrozenTrial | None:
    return next((t for t in book.all_trials() if t.number == number), None)


def _check_open(book: Book, form: Form) -> None:
    trial = find(book, form.number)
    if trial is not None and trial.state.is_finished():
        raise Conflict(f"Trial {form.number} has a result already: {entered(trial)}. Yours was not stored.")


def _check_unchanged(book: Book, form: Form) -> None:
    trial = find(book, form.number)
    if trial is not None and trial.state.is_finished() and state_of(trial) != form.was:
        raise Conflict(
            f"Trial {form.number} was changed in the meantime; it is now: {entered(trial)}. Yours was not stored."
        )


def _needed(reason: str, what: str) -> str:
    if not reason.strip():
        raise InputError(f"say why {what}, for example: the pump leaked")
    return reason


def _signed(reason: str, by: str) -> str:
    return f"{reason} ({by})".strip() if by else reason


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
