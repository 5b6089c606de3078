"""TOML for people: read with errors that name the file, the key, what was found and what to write; written readably."""

from __future__ import annotations

import json
import math
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import InputError, MissingFile, UserError, brief, first_line
from jumbo_bo.inputs import text_of
from jumbo_bo.space.beliefs import Belief, Beliefs, about
from jumbo_bo.space.space import Space


class Check(NamedTuple):
    right: Callable[[Any], bool]
    words: str  # what is expected
    known: tuple[str, ...] = ()  # what a misspelt value may be compared with


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond all floats
        return False


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def is_cell(value: Any) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def list_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, list) and v != [] and all(map(right, v))


def is_bound(value: Any) -> bool:
    return is_number(value) or (isinstance(value, float) and math.isinf(value))


def whole(least: int) -> Check:
    return Check(lambda v: INTEGER.right(v) and v >= least, f"a whole number, at least {least}")


def one_of(*known: str) -> Check:
    return Check(lambda v: v in known, "one of " + ", ".join(map(quoted, known)), known)


TEXT = Check(is_text, "text in quotes")
TEXTS = Check(lambda v: is_text(v) or list_of(is_text)(v), "text or a list of strings")
NUMBER = Check(is_number, "a number")
NOT_NEGATIVE = Check(lambda v: is_number(v) and v >= 0, "a number, at least 0")
SHARE = Check(lambda v: is_number(v) and 0 < v < 1, "a number between 0 and 1")
RANGE = Check(
    lambda v: isinstance(v, list) and len(v) == 2 and all(map(is_bound, v)) and v[0] < v[1],
    "two numbers, the smaller one first, for example [0, 100]; inf and -inf are no bound",
)
POSITIVE = Check(lambda v: is_number(v) and v > 0, "a number above 0")
INTEGER = Check(
    lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**63, "a whole number, of at most 19 digits"
)
YES_NO = Check(lambda v: isinstance(v, bool), "true or false")
CELL = Check(is_cell, "text, a number or true/false")
CHOICES = Check(list_of(is_cell), 'a list of text, numbers or true/false, for example ["relu", "tanh"]')
TABLE = Check(lambda v: isinstance(v, dict), "a table")
CONSTRAINTS = Check(
    lambda v: isinstance(v, list) and all(map(is_text, v)), 'a list of strings, for example ["x_a + x_b <= 1"]'
)


WHEN = "when"  # the condition under which a parameter exists
TYPES = {
    "float": ("low", "high", "log", "step"),
    "int": ("low", "high", "log", "step"),
    "categorical": ("choices",),
}

BELIEF = ("factor", "within", "odds")
ABOUT = ("default", "about", *BELIEF)  # what else may be said of a parameter


@dataclass(frozen=True)
class Table:
    """One table of a file, and the words for what is wrong in it."""

    file: Path
    name: str  # 'space.lr'; '' is the whole file
    values: Mapping[str, Any]

    def take(self, key: str, check: Check, default: Any = ...) -> Any:
        """The value of a key; without a default it must be there."""
        if key not in self.values and default is not ...:
            return default
        if key not in self.values or not check.right(self.values[key]):
            raise self.wrong(key, check.words, check.known)
        return self.values[key]

    def table(self, key: str) -> Table:
        return Table(self.file, self._name(key), self.take(key, TABLE))

    def only(self, *known: str) -> None:
        for key in self.values:
            if key not in known:
                where = f"{self.name} has an" if self.name else "there is an"
                raise self.error(
                    f"{where} unknown key {brief(key)}{closest(key, known)}; the keys here: {', '.join(known)}"
                )

    def wrong(self, key: str, expected: str, known: Sequence[str] = ()) -> UserError:
        found = self.values.get(key)
        state = f"is {brief(found)}" if key in self.values else "is missing"
        return self.error(f"{self._name(key)} {state}, expected {expected}{closest(found, known)}")

    def error(self, text: str) -> UserError:
        return UserError(f"{self.file}: {text}")

    def _name(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def read(file: Path) -> Table:
    try:
        text = text_of(file)
    except MissingFile:
        raise UserError(f"{file} does not exist; write one with `jumbo init`") from None
    except InputError as error:
        raise UserError(f"{error}; write one with `jumbo init`") from None
    try:
        return Table(file, "", tomllib.loads(text))
    except RecursionError:
        raise UserError(f"{file} has lists or tables too deep inside each other") from None
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        what, _, place = str(error).rpartition(" (at ")  # 'line 3, column 7)' or 'end of document)'
        found = re.match(r"line (\d+)", place)
        n = min(int(found[1]) if found else len(lines), len(lines))
        raise UserError(f"{file}, line {n}: {what}; the line is {brief(lines[n - 1].strip())}") from None
    except ValueError as error:  # a number with more digits than Python reads, or a day that no calendar has
        raise UserError(f"{file} has a value that cannot be read: {first_line(error)}") from None


def space(top: Table) -> Space:
    """The table [space], a parameter on each line, and the list of constraints."""
    example = "[space] and below it one line for each parameter, for example lr = "
    example += '{ type = "float", low = 1e-5, high = 0.1, log = true }'
    if not isinstance(top.values.get("space"), dict) or not top.values["space"]:
        raise top.wrong("space", example)
    table = top.table("space")
    distributions = {name: _distribution(table, name) for name in table.values}
    conditions = {name: table.table(name).take(WHEN, TEXT) for name in table.values if WHEN in table.values[name]}
    try:
        return Space(distributions, conditions, top.take("constraints", CONSTRAINTS, ()))
    except (ValueError, TypeError) as error:
        raise top.error(f"space: {error}") from None


def defaults(top: Table, space: Space) -> dict[str, Any]:
    """The values that parameters had before they became some: `default` in a line of [space]."""
    found = {}
    for name, axis in zip(space.names, space.axes, strict=True):
        table = top.table("space").table(name)
        if "default" in table.values:
            if not math.isfinite(axis.encode([table.values["default"]])[0]):
                raise table.wrong("default", axis.describe())
            found[name] = axis.decode(float(axis.encode([table.values["default"]])[0]))
    return found


def beliefs(top: Table, space: Space) -> dict[str, Belief]:
    """What the best values are probably about: `about` in a line of [space]."""
    found = {}
    for name in space.names:
        table = top.table("space").table(name)
        said = {kind: table.take(kind, NUMBER) for kind in BELIEF if kind in table.values}
        if "about" in table.values:
            found[name] = about(table.values["about"], **said)
        elif said:
            raise table.wrong("about", f"the value that {' and '.join(said)} goes with")
    try:
        return dict(Beliefs(space, found).of)
    except InputError as error:
        raise top.error(f"space: {error}") from None


def _distribution(parameters: Table, name: str) -> BaseDistribution:
    if not isinstance(parameters.values[name], dict):
        raise parameters.wrong(name, 'a table, for example { type = "float", low = 0.0, high = 1.0 }')
    table = parameters.table(name)
    kind = table.take("type", one_of(*TYPES))
    table.only("type", *TYPES[kind], WHEN, *ABOUT)
    if kind == "categorical":
        return CategoricalDistribution(table.take("choices", CHOICES))
    number = NUMBER if kind == "float" else INTEGER
    low, high = table.take("low", number), table.take("high", number)
    log, step = table.take("log", YES_NO, False), table.take("step", number, None)
    if low >= high:
        advice = "; a parameter that never changes needs no line here" if low == high else ""
        raise table.error(f"{table.name} has low = {low} and high = {high}, expected low below high{advice}")
    if log and low <= 0:
        raise table.error(f"{table.name} has log = true and low = {low}, expected low above 0; or leave log out")
    if step is not None and step <= 0:
        raise table.wrong("step", "a number above 0")
    if log and step not in (None, 1 if kind == "int" else None):
        raise table.error(f"{table.name} has log = true and step = {step}, expected one of the two; leave one out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna lowers `high` to the last step; here it is an error, below
            if kind == "int":
                made: IntDistribution | FloatDistribution = IntDistribution(low, high, log=log, step=step or 1)
            else:
                made = FloatDistribution(low, high, log=log, step=step)
    except (ValueError, ArithmeticError) as error:  # for example more steps than a decimal number can count
        raise table.error(f"{table.name} has a range that cannot be used: {first_line(error)}") from None
    if step is not None and made.high != high:
        raise table.error(
            f"{table.name} goes from low = {low} in steps of {step} and misses high = {high}; write high = {made.high}"
        )
    return made


def quoted(text: str) -> str:
    """A TOML string on one line. JSON escapes the same way, but leaves DEL as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def written(value: Any) -> str:
    """Text, numbers, true/false, and lists and tables of them."""
    match value:
        case str():
            return quoted(value)
        case bool():
            return str(value).lower()
        case int() | float():
            return re.sub(r"e-0", "e-", repr(value))  # 1e-5
        case Mapping():
            return "{ " + ", ".join(f"{key(k)} = {written(v)}" for k, v in value.items()) + " }"
        case Sequence():
            return "[" + ", ".join(map(written, value)) + "]"
    raise TypeError(f"{value!r} cannot be written as TOML")


def parameter(dist: BaseDistribution, when: str | None = None) -> dict[str, Any]:
    """What `space` reads back as this parameter."""
    if when is not None:
        return parameter(dist) | {WHEN: when}
    if isinstance(dist, CategoricalDistribution):
        return {"type": "categorical", "choices": dist.choices}
    assert isinstance(dist, FloatDistribution | IntDistribution)
    usual = 1 if isinstance(dist, IntDistribution) else None
    kind: dict[str, Any] = {"type": "int" if usual else "float", "low": dist.low, "high": dist.high}
    return kind | ({"log": True} if dist.log else {}) | ({"step": dist.step} if dist.step != usual else {})
