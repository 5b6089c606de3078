"""The study in its storage. A process may be killed between any two writes: what it leaves can be continued.

User attributes of a trial, besides those of `studies.py`
    runner      {"folder": id of the runs folder that evaluates it, "run": id of the trial, "place": where that folder
                is, for the case that it gets deleted}; none for `jumbo ask`
    claimed by  with the id of a runs folder: the same, while an enqueued trial is being claimed
    seconds     how long the evaluation took
    error       why a failed trial failed
    entered by  who told the result, where that is known (`jumbo serve`)
    measured    limited quantities: name -> value; also as constraints, for Optuna
    remaining   in studies with a stopping rule: the chance of a larger gain when it was started
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage, get_storage
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo.correct import forget, replace_values, restore, retry_failed
from jumbo_bo.data.corrections import Correction, Corrections, corrections
from jumbo_bo.data.goals import MEASURED, as_one
from jumbo_bo.data.limits import met
from jumbo_bo.data.readers import measured
from jumbo_bo.data.spaces import spaces_in
from jumbo_bo.data.storage import cause_of, checked, database_errors, opened, shown, sqlite_file
from jumbo_bo.errors import UserError
from jumbo_bo.runner.checked import check_packages, check_study
from jumbo_bo.runner.kept import Kept, Sorter
from jumbo_bo.search.candidates import agrees, having, points
from jumbo_bo.space.space import Params
from jumbo_bo.studies import broken, configuration, decide, remembered
from jumbo_bo.study.study_file import StudyFile

if TYPE_CHECKING:  # `jumbo status` and `tell` do not load the models
    from jumbo_bo.optimizer import Optimizer

RUNNER, SECONDS, ERROR, BY = "runner", "seconds", "error", "entered by"
MARK = "claimed by "
BUSY = 2000  # milliseconds until a locked SQLite file is reported; the patience above that is the caller's


class StorageTrouble(Exception):
    """The storage is locked or gone for now, and why."""

    def __init__(self, error: Exception) -> None:
        super().__init__(cause_of(error))
        self.error = error


class Decision(NamedTuple):
    optimizer: Optimizer
    trial: FrozenTrial
    trials: list[FrozenTrial]  # of the study, as they were a moment ago


@dataclass(frozen=True)
class Book:
    file: StudyFile
    storage: BaseStorage
    study_id: int
    sorter: Sorter
    news: bool = False  # the space is another one than when the study was last opened for a suggestion

    def trials(self) -> list[FrozenTrial]:
        """Those that count, as they were corrected."""
        return list(self.kept().trials)

    def kept(self) -> Kept:
        """What is kept as what, where the space has changed."""
        with self._usable():
            return self.sorter.sort(remembered(self.storage, self.study_id, self.file.names))

    def old_runs(self) -> tuple[FrozenTrial, ...]:
        """Trials of another space than the present one, which are old runs."""
        return self.kept().old_runs if self.sorter.changed else ()

    def all_trials(self) -> list[FrozenTrial]:
        """Also the forgotten ones."""
        with self._usable():
            trials = self.corrections().applied(self.storage.get_all_trials(self.study_id, deepcopy=False))
            return [self.sorter.seen(as_one(t, self.file.names)) for t in trials]

    def corrections(self) -> Corrections:
        with self._usable():
            return corrections(self.storage, self.study_id)

    def replace(self, values: Mapping[int, float | None], why: str) -> list[Correction]:
        """Other values for finished trials, by number. No value: it failed."""
        with self._usable():
            return replace_values(self.storage, self.study_id, values, why)

    def forget(self, numbers: Sequence[int], why: str) -> None:
        with self._usable():
            forget(self.storage, self.study_id, numbers, why)

    def restore(self, numbers: Sequence[int], why: str) -> None:
        """Forgotten trials count again."""
        with self._usable():
            restore(self.storage, self.study_id, numbers, why)

    def retry_failed(self) -> list[int]:
        """Forgets the failed trials and enqueues their configurations again. The numbers of the failed ones."""
        with self._usable():
            return retry_failed(self.storage, self.study_id, self.file.space)

    def add(
        self,
        state: TrialState,
        params: Params,
        user: Mapping[str, Any],
        value: float | None = None,
        measured: Mapping[str, float] | None = None,
    ) -> FrozenTrial:
        dists, stored = self.file.space.distributions, {name: self._stored(name) for name in params}
        template = create_trial(
            state=state,
            values=self._values(value, measured or {}),
            params={stored[name]: setting for name, setting in params.items()},
            distributions={stored[name]: dists[name] for name in params},
            user_attrs={**user, **self._limited(measured or {})},
            constraints=self._excess(measured or {}),
        )
        with self._usable():
            return self._trial(self.storage.create_new_trial(self.study_id, template_trial=template))

    def _stored(self, name: str) -> str:
        return self.sorter.spaces.stored_as.get(name, name)

    def _trial(self, trial_id: int) -> FrozenTrial:
        return self.sorter.spaces.read(as_one(self.storage.get_trial(trial_id), self.file.names))

    def _values(self, value: float | None, measured: Mapping[str, float]) -> list[float] | None:
        """As Optuna keeps them: of all goals, where there are several."""
        return None if value is None else [value, *(measured[name] for name in self.file.names[1:])]

    def _limited(self, measured: Mapping[str, float]) -> dict[str, Any]:
        """What is kept beside the values."""
        found = {name: q for name, q in measured.items() if name not in self.file.names}
        return {MEASURED: found} if found else {}

    def reserve(self, user: Mapping[str, Any]) -> FrozenTrial:
        """A running trial whose parameters are not decided yet: other processes know that one is coming."""
        return self.add(TrialState.RUNNING, {}, user)

    def decide(self, optimizer: Optimizer, trial: FrozenTrial) -> Decision:
        """Gives the trial the parameters that the optimizer suggests after following the study."""
        trials: list[FrozenTrial] = []

        def read() -> list[FrozenTrial]:
            trials[:] = self.trials()
            return trials

        def store(attributes: Mapping[str, Any]) -> None:
            with self._usable():
                for key, attribute in attributes.items():
                    self.storage.set_trial_user_attr(trial._trial_id, key, attribute)

        optimizer, suggestion = decide(optimizer, read, trial.number, store)
        decided = self.complete(trial, suggestion.params)
        return Decision(optimizer, decided, [decided if t.number == decided.number else t for t in trials])

    def exhausted(self, trials: Iterable[FrozenTrial], fixed: Params | None = None) -> bool:
        """Whether every configuration that may be tried, with these values, is tried or being tried."""
        space, listed, held = self.file.space, self.file.listed, fixed or {}
        wanted = None if listed is None else points(space, having(space, listed, held))
        n = space.count(held) if fixed and wanted is None else self.file.n_configurations
        if n is None:
            return False
        found = [params for t in trials if not broken(t, space) and (params := configuration(t, space))]
        tried = points(space, [params for params in found if agrees(space, params, held)])
        return len(tried) >= n if wanted is None else tried >= wanted

    def claim(self, waiting: FrozenTrial, ours: Mapping[str, str]) -> bool:
        """Makes an enqueued trial ours, False when another process was faster.

        The mark tells a process that is killed right after the claim whose trial it is. Each folder has its own, so
        that one that comes too late does not overwrite another's."""
        mark, trial_id = f"{MARK}{ours['folder']}", waiting._trial_id
        with self._usable(), suppress(UpdateFinishedTrialError):
            if self.storage.get_trial(trial_id).state != TrialState.WAITING:
                return False
            self.storage.set_trial_user_attr(trial_id, mark, dict(ours))
            won = self.storage.set_trial_state_values(trial_id, TrialState.RUNNING)
            self.storage.set_trial_user_attr(trial_id, RUNNER if won else mark, dict(ours) if won else None)
            return won
        return False

    def complete(self, trial: FrozenTrial, params: Params) -> FrozenTrial:
        """The running trial with the parameters that it lacks."""
        with self._usable():
            for name, dist in self.file.space.distributions.items():
                if name in params and name not in trial.params:
                    setting = dist.to_internal_repr(params[name])
                    self.storage.set_trial_param(trial._trial_id, self._stored(name), setting, dist)
            return self._trial(trial._trial_id)

    def _excess(self, measured: Mapping[str, float]) -> dict[str, float]:
        """As Optuna keeps constraints, for `Study.best_trial` and its plots."""
        limits = [limit for limit in self.file.limits if limit.name in measured]
        return {limit.name: limit.excess(measured[limit.name]) for limit in limits}

    def finish(
        self,
        trial: FrozenTrial,
        value: float | None,
        user: Mapping[str, Any],
        measured: Mapping[str, float] | None = None,
    ) -> FrozenTrial | None:
        """The finished trial; None when another process finished it. No value: it failed."""
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        user = {**user, **self._limited(measured or {})}
        with self._usable():
            try:
                for key, attribute in user.items():
                    self.storage.set_trial_user_attr(trial._trial_id, key, attribute)
                for name, excess in self._excess(measured or {}).items():  # as Trial.set_constraint does
                    self.storage.set_trial_system_attr(trial._trial_id, f"constraints:{name}", excess)
                self.storage.set_trial_state_values(trial._trial_id, state, self._values(value, measured or {}))
            except UpdateFinishedTrialError:  # perhaps by us, and only the answer was lost
                told = self._trial(trial._trial_id)
                return told if (told.state, told.value) == (state, value) else None
            return self._trial(trial._trial_id)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        url = checked(self.file.address)
        kept = sqlite_file(url) if url else Path(self.file.address)
        try:
            # An open SQLite file that was deleted takes writes without complaint.
            if kept is not None and not kept.exists():
                raise FileNotFoundError(f"{kept} is gone; put it back and run the same command again")
            yield
        except database_errors(OSError) as error:
            raise StorageTrouble(error) from error
        except KeyError:
            raise UserError(f"the study {self.file.name!r} was deleted from {shown(self.file.address)}") from None


@contextmanager
def opened_book(file: StudyFile, create: bool = True) -> Iterator[Book]:
    """The study of the file, checked against it. Without `create` it must be there."""
    if create:
        check_packages(file)
    with opened(file.address, create) as storage:
        if isinstance(storage, RDBStorage) and storage.engine.dialect.name == "sqlite":
            from sqlalchemy import event

            event.listen(storage.engine, "connect", lambda c, _: c.execute(f"PRAGMA busy_timeout = {BUSY}"))
            storage.engine.dispose()  # the connections from before
        try:
            cached = get_storage(storage)  # finished trials are read once
            news = check_study(file, cached, create)
            study_id = cached.get_study_id_from_name(file.name)
            attributes = cached.get_study_user_attrs(study_id)
            yield Book(file, cached, study_id, Sorter(file, spaces_in(attributes)), news)
        except StorageTrouble as trouble:
            raise trouble.error  # noqa: B904 (`from None` would forget its cause, with which `opened` explains it)


def best(trials: Sequence[FrozenTrial], file: StudyFile) -> FrozenTrial | None:
    """Of those that meet the constraints and the limits. With several goals there is none, see fronts.py."""
    if file.goals:
        return None
    values = [t for t in trials if t.state == TrialState.COMPLETE and t.value is not None and not broken(t, file.space)]
    values = [t for t in values if met(file.limits, measured(t))]
    sign = 1.0 if file.direction == "minimize" else -1.0
    return min(values, key=lambda t: (sign * (t.value or 0.0), t.number), default=None)


def n_counted(trials: Sequence[FrozenTrial]) -> int:
    """How many trials of the budget are used. None while all have failed: then the program is broken, and that says
    nothing about its parameters."""
    ended = [t.state for t in trials if t.state.is_finished()]
    return len(ended) if any(state != TrialState.FAIL for state in ended) else 0


def runner(trial: FrozenTrial) -> Mapping[str, str]:
    """Who evaluates it, empty when that is not a `jumbo run`."""
    marks = [value for key, value in trial.user_attrs.items() if key.startswith(MARK) and value]
    found = trial.user_attrs.get(RUNNER) or (marks[0] if len(marks) == 1 else None)
    return found if isinstance(found, dict) and {"folder", "run"} <= set(found) else {}
