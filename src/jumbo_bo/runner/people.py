"""`jumbo ask` and `jumbo tell`: a person evaluates. A suggestion stays open in the study until it has a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import Correction
from jumbo_bo.data.frames import closest
from jumbo_bo.data.goals import Goal, told_values
from jumbo_bo.data.limits import checked_measured
from jumbo_bo.errors import QUOTED, InputError, UserError, brief, clip
from jumbo_bo.held import holding
from jumbo_bo.inputs import from_json
from jumbo_bo.runner.book import BY, ERROR, Book, runner
from jumbo_bo.runner.stopping import Stopping
from jumbo_bo.space.space import Params, Space
from jumbo_bo.studies import WHY, follow
from jumbo_bo.study.study_file import StudyFile

KEYS = ("trial", "params", "value", "failed", "measured")
SAID = ("why", "predicted", "limits")  # by `jumbo ask`
EXAMPLE = '{"trial": 3, "value": 0.71}'


def ask(book: Book, n: int, note: Callable[[str], None], fixed: Params | None = None) -> Iterator[FrozenTrial]:
    """n new open trials with these values, each in the study before it is returned."""
    from jumbo_bo.runner.build import build_optimizer  # the models, which `tell` and `status` do not need

    kept = book.kept()
    if book.news:
        note(str(kept))
    optimizer = build_optimizer(book.file, book.file.trials, note, earlier=kept.old_runs)
    stopping, trials = Stopping(book.file.stop), list(kept.trials)
    for _ in range(n):
        if book.exhausted(trials, fixed):
            which = "configurations with these values" if fixed else f"{book.file.n_configurations:,} configurations"
            raise UserError(
                f"all {which} have been tried or are open; see the results with `jumbo status {book.file.path}`"
            )
        optimizer = follow(optimizer, trials)
        stopping.look(optimizer)
        trial = book.reserve(stopping.attributes())
        chooser = holding(optimizer, fixed, trial.number) if fixed else optimizer
        chooser, trial, trials = book.decide(chooser, trial)
        optimizer = optimizer if fixed else chooser
        yield trial


def fixed_of(texts: Iterable[str], space: Space) -> Params:
    """Values such as 'optimizer=sgd'."""
    found: Params = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--fix {text} has no '='; write --fix {space.names[0]}=VALUE")
        if name not in space.distributions:
            raise UserError(f"--fix {text}: there is no parameter {name!r}{closest(name, space.names)}")
        axis = space.axes[space.names.index(name)]
        (u,) = axis.encode([value])
        if not math.isfinite(u):
            raise UserError(f"--fix {text}: expected {axis.describe()}")
        if name in found:
            raise UserError(f"--fix names {name!r} twice")
        found[name] = axis.decode(float(u))
    return found


def is_open(trial: FrozenTrial) -> bool:
    """Suggested to a person, and without a result yet."""
    return trial.state == TrialState.RUNNING and bool(trial.params) and not runner(trial)


@dataclass(frozen=True)
class Entry:
    """One result: of an open trial, or of an experiment of one's own. No value: it failed."""

    where: str  # 'line 3: ', empty when there is only one
    number: int | None
    params: Params | None
    value: float | None
    measured: Mapping[str, float] = field(default_factory=dict)  # limited quantities
    others: Mapping[str, float] = field(default_factory=dict)  # goals after the first
    reason: str = ""  # of a failure
    by: str = ""  # who entered it, if that is known


def parse(lines: Iterable[str], goals: Sequence[Goal] = ()) -> list[Entry]:
    """One JSON object per line; empty lines are skipped."""
    return [_entry(f"line {i}: ", line, goals) for i, line in enumerate(lines, 1) if line.strip()]


def _entry(where: str, line: str, goals: Sequence[Goal]) -> Entry:
    try:
        found = from_json(line)
    except ValueError as error:
        raise UserError(f"{where}not JSON ({error}); write one object per line like {EXAMPLE}") from None
    if not isinstance(found, dict):
        raise UserError(f"{where}{clip(line.strip(), QUOTED)} is not a JSON object; write one per line like {EXAMPLE}")
    if unknown := [key for key in found if key not in (*KEYS, *SAID)]:  # as `jumbo ask` printed it: fine
        raise UserError(f"{where}unknown key {brief(unknown[0])}; expected {', '.join(KEYS)}")
    number, params = found.get("trial"), found.get("params")
    if number is None and params is None:
        raise UserError(f"{where}neither 'trial' nor 'params'; write {EXAMPLE}")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise UserError(f"{where}'trial' is {brief(number)}, expected the number printed by `jumbo ask`")
    if params is not None and not isinstance(params, dict):
        raise UserError(f"{where}'params' is {brief(params)}, expected an object like {{\"lr\": 0.01}}")
    failed = found.get("failed", False)
    if not isinstance(failed, bool) or failed == ("value" in found):
        raise UserError(f'{where}give either a "value" or "failed": true')
    measured = found.get("measured", {})
    if not isinstance(measured, dict):
        raise UserError(f"{where}'measured' is {brief(measured)}, expected an object like {{\"latency_ms\": 18.2}}")
    value, others = (None, {}) if failed else results_of(found["value"], goals, where)
    return Entry(where, number, params, value, measured, others)


def results_of(value: Any, goals: Sequence[Goal], where: str = "") -> tuple[float, dict[str, float]]:
    """The value, and those of further goals. On a command line, texts such as '0.71' and 'time_s=18.2'."""
    names = [goal.name for goal in goals]
    if not where:
        value = _by_name(value, names or ["value"])
    if not goals:
        return number_of(value if where else value[0], where), {}
    try:
        told_values(value, goals)
    except InputError as error:
        raise UserError(f"{where}{error}") from None
    by_name = value if isinstance(value, dict) else dict(zip(names, value, strict=True))
    first, *others = ((name, number_of(by_name[name], where)) for name in names)
    return first[1], dict(others)


def _by_name(texts: Sequence[str], names: Sequence[str]) -> list[str] | dict[str, str]:
    """Either all with names or none."""
    pairs = [text.rpartition("=") for text in texts]
    if len(names) > 1 and all(is_pair for _, is_pair, _ in pairs):
        if len({name for name, _, _ in pairs}) < len(pairs):
            raise UserError(f"a goal is named twice in {' '.join(texts)}")
        return {name: number for name, _, number in pairs}
    if len(texts) != len(names):
        found = f"is {len(texts)} value" if len(texts) == 1 else f"are {len(texts)} values"
        raise UserError(f"there {found}, expected {len(names)}: {', '.join(names)}")
    return list(texts)


def number_of(value: Any, where: str = "") -> float:
    """Text that spells a number is a mistake in JSON, and the only way to write one on a command line."""
    try:
        if isinstance(value, bool | str) and where:
            raise ValueError
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise UserError(f"{where}the value is {brief(value)}, expected a number") from None
    if not math.isfinite(number):
        fix = 'write "failed": true' if where else "use --failed"
        raise UserError(f"{where}the value is {number}; for an experiment without a result {fix}")
    return number


def measured_of(texts: Sequence[str]) -> dict[str, float]:
    """From a command line: NAME=NUMBER each."""
    found = {}
    for text in texts:
        name, is_pair, number = text.rpartition("=")
        if not is_pair or not name:
            raise UserError(f"--measured {brief(text)}: expected NAME=NUMBER, for example latency_ms=18.2")
        found[name] = number_of(number)
    return found


def tell(book: Book, entries: Sequence[Entry]) -> list[FrozenTrial]:
    """The trials as they are stored now. All entries are checked before the first one is written."""
    trials, forgotten = {t.number: t for t in book.all_trials()}, book.corrections().forgotten
    for entry in _once_each(entries):
        if entry.number is not None:
            if entry.number in forgotten:
                raise UserError(
                    f"{entry.where}trial {entry.number} is forgotten; restore it first (`jumbo forget "
                    f"{book.file.path} {entry.number} --restore`), or report the value as a separate experiment, with "
                    '"params" instead of "trial"'
                )
            _check_open(book.file, trials, entry)
        try:
            checked_measured(entry.measured, book.file.limits)
        except InputError as error:
            raise UserError(f"{entry.where}{error}") from None
    points = [_checked_params(book.file, trials, entry) for entry in entries]
    return [_store(book, trials, entry, point) for entry, point in zip(entries, points, strict=True)]


def replace(book: Book, entries: Sequence[Entry], why: str) -> list[Correction]:
    """Other values for trials that have one. All entries are checked before the first one is written."""
    trials, values = {t.number: t for t in book.all_trials()}, {}
    for entry in _once_each(entries):
        if entry.number is None:
            raise UserError(f'{entry.where}only a trial with a number has a value to replace; add "trial"')
        if entry.measured:
            raise UserError(
                f"{entry.where}a replaced value keeps what was measured with it; leave out "
                f"{'measured' if entry.where else '--measured'}. To correct that as well, forget the trial "
                f"(`jumbo forget {book.file.path} {entry.number} --reason ...`) and report the experiment anew, with "
                '"params" instead of "trial"'
            )
        values[entry.number] = entry.value
        if entry.number in trials:
            _checked_params(book.file, trials, entry)
            if not trials[entry.number].state.is_finished():
                raise UserError(f"{entry.where}trial {entry.number} has no result yet; leave out --replace")
    return book.replace(values, why)


def withdraw(book: Book, number: int, why: str, by: str = "") -> None:
    """Nobody will run this open trial: it is as if it had never been suggested. Whoever is killed between the two steps
    leaves a failed trial with this reason."""
    tell(book, [Entry("", number, None, None, reason=f"withdrawn: {why}", by=by)])
    book.forget([number], f"withdrawn: {why}" + (f" ({by})" if by else ""))


def _once_each(entries: Iterable[Entry]) -> Iterator[Entry]:
    seen: dict[int, str] = {}
    for entry in entries:
        if entry.number is not None:
            if entry.number in seen:
                raise UserError(
                    f"{entry.where}trial {entry.number} appears twice; the other is in {seen[entry.number]}"
                )
            seen[entry.number] = entry.where.rstrip(": ")
        yield entry


def _check_open(file: StudyFile, trials: Mapping[int, FrozenTrial], entry: Entry) -> None:
    trial, start = trials.get(entry.number or 0), f"{entry.where}trial {entry.number}"
    if trial is None:
        numbers = [t.number for t in trials.values() if is_open(t)]
        waiting = f"open trials: {', '.join(map(str, numbers))}" if numbers else "none is open"
        raise UserError(
            f"{entry.where}there is no trial {entry.number}; {waiting}. For an experiment of your own, report it "
            f'with its parameters: {{"params": {{...}}, "value": ...}}'
        )
    if trial.state == TrialState.WAITING:
        raise UserError(f"{start} is enqueued and has not been started yet; `jumbo run {file.path}` evaluates it")
    if trial.state.is_finished():
        stored = f"the value {trial.value!r}" if trial.value is not None else f"the state {trial.state.name}"
        raise UserError(
            f"{start} already has {stored}. If that is wrong, add --replace; if you measured again, report the second "
            'value as a separate experiment, with "params" instead of "trial"; both will count'
        )
    if not trial.params and entry.value is not None:
        raise UserError(f"{start} has no parameters yet; if its `jumbo ask` was killed, give it up with --failed")
    if runner(trial) and entry.value is not None:
        raise UserError(
            f"{start} is evaluated by `jumbo run`; wait for it, or, if that run is lost, give it up with "
            f"`jumbo tell {file.path} {entry.number} --failed`"
        )


def _checked_params(file: StudyFile, trials: Mapping[int, FrozenTrial], entry: Entry) -> Params:
    if entry.params is None:
        return {}
    try:
        params = file.space.decode(file.space.encode(entry.params))
    except InputError as error:
        raise UserError(f"{entry.where}{error}") from None
    asked = None if entry.number is None else trials[entry.number].params
    if asked is not None and params != asked:
        raise UserError(
            f"{entry.where}trial {entry.number} was suggested with {asked}; to report other parameters, leave "
            "'trial' out, and report the trial itself as failed if nobody will run it"
        )
    return params


def _store(book: Book, trials: Mapping[int, FrozenTrial], entry: Entry, params: Params) -> FrozenTrial:
    user = {} if entry.value is not None else {ERROR: entry.reason or "reported as failed"}
    user |= {BY: entry.by} if entry.by else {}
    measured = checked_measured(entry.measured, book.file.limits) | dict(entry.others)
    if entry.number is None:
        state = TrialState.FAIL if entry.value is None else TrialState.COMPLETE
        return book.add(state, params, {WHY: "An experiment of your own.", **user}, entry.value, measured)
    told = book.finish(trials[entry.number], entry.value, user, measured)
    if told is None:
        raise UserError(f"{entry.where}trial {entry.number} was finished by another process in the meantime")
    return told
