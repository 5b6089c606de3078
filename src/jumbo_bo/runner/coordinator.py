"""The loop of `jumbo run`: starts attempts, collects their results and tells them to the study.

Nothing is remembered here that matters. What is to be done follows from the study and from the files of its trials:

    a trial of this folder is running in the study, and ...
    ... an attempt has a result             it is told
    ... somebody is at work on an attempt   it is waited for
    ... neither                             a new attempt is started

So a process killed at any moment is continued by the next one, a result that exists is never lost, and a trial that has
one is never evaluated again.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from contextlib import suppress
from datetime import datetime
from functools import partial

from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.errors import UserError
from jumbo_bo.fronts import front
from jumbo_bo.held import holding
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.runner.attempt import Outcome, attempts, failures, outcome, prepare
from jumbo_bo.runner.book import ERROR, RUNNER, SECONDS, Book, StorageTrouble, best, n_counted, runner
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.engines import Engine
from jumbo_bo.runner.place import check_folder, is_here, place_of
from jumbo_bo.runner.stopping import Stopping
from jumbo_bo.runner.supervise import GRACE
from jumbo_bo.runner.watching import Ending as Ending
from jumbo_bo.runner.watching import Running as Running
from jumbo_bo.runner.watching import Watcher as Watcher
from jumbo_bo.search.argmax import SpaceExhausted
from jumbo_bo.space.space import Params
from jumbo_bo.studies import NUMBERS, follow

SHORTEST, LONGEST = 0.05, 0.5  # seconds between two looks at the running attempts
REFRESH = 5.0  # seconds after which the study is read again, for what others did
PATIENCE = 60.0  # seconds a storage may be locked or gone
HOPELESS = 5  # failed trials in a row, without a single value in the study, that end the run
MOST_LOST = 5  # attempts of one trial that may vanish without a result


class _Unusable(Exception):
    """A trial was enqueued with parameters that are not in the space."""


class Coordinator:
    def __init__(self, book: Book, engine: Engine, limit: int, watch: Watcher, folder_id: str) -> None:
        self.book, self.engine, self.limit, self.watch, self.folder_id = book, engine, limit, watch, folder_id
        self.file, self.place = book.file, place_of(book.file)
        self.optimizer: Optimizer | None = None
        self.active: dict[int, Running] = {}  # trial number ->
        self.trials: list[FrozenTrial] = []
        self.lost: Counter[int] = Counter()  # trial number -> attempts that vanished
        self.failed_in_a_row = 0
        self.exhausted = False
        self.stopping = Stopping(book.file.stop)

    def run(self) -> Ending:
        self.trials = self.book.trials()
        if self._n_finished() < self.limit:
            self._optimizer()
        read, quiet, trouble = time.monotonic(), 0, 0.0  # the study, looks without news, since when there is trouble
        while True:
            self.watch.tick(list(self.active.values()), self._n_finished(), self.limit)  # may raise KeyboardInterrupt
            try:
                news = self._collect()
                if news or time.monotonic() - read > REFRESH:
                    self.trials, read = self.book.trials(), time.monotonic()
                news = self._start_one() or news
                trouble = 0.0
            except StorageTrouble as error:
                trouble, news = self._endure(error, trouble), True
                read = -REFRESH  # whether the last write has happened is seen in the study
                continue
            if not self.active and (ending := self._ending()):
                return ending
            quiet = 0 if news else quiet + 1
            if not news:
                time.sleep(min(LONGEST, SHORTEST * (1 + quiet / 20)))

    def stop(self) -> None:
        """Ends the running attempts. Their trials stay running in the study, so the next run starts them again."""
        for running in self.active.values():
            with suppress(FileNotFoundError):  # the runs folder was deleted
                (running.folder / "stop").touch()
        deadline = time.monotonic() + GRACE + 2
        while any(map(self._is_at_work, self.active.values())) and time.monotonic() < deadline:
            time.sleep(SHORTEST)

    def _is_at_work(self, running: Running) -> bool:
        return self.engine.alive(running.folder) and outcome(running.folder, self.file.job, alive=True) is None

    # What has ended

    def _collect(self) -> bool:
        """Tells every result there is. True when something has ended."""
        ended = 0
        for running in list(self.active.values()):
            alive = self.engine.alive(running.folder)  # asked first: the last act of the living is the result
            end = outcome(running.folder, self.file.job, alive)
            if end is None and alive:
                continue
            ended += 1
            if end is not None and end.value is not None:
                self._finish(running.trial, end)
            elif end is not None and end.error is not None:
                self._failed(running, end)
            else:
                self._vanished(running)
        return ended > 0

    def _failed(self, running: Running, end: Outcome) -> None:
        trial = running.trial
        tries = failures(attempts(self.file.runs, trial), self.file.job)
        if tries <= self.file.job.retries:
            self.watch.note(f"trial {trial.number}: {end.error}. Trying again ({tries} of {self.file.job.retries})")
            self._attempt(trial)
        else:
            self._finish(trial, end)

    def _vanished(self, running: Running) -> None:
        """No fault of the configuration: killed from outside, or stopped with an earlier run."""
        trial = running.trial
        self.lost[trial.number] += 1
        if self.lost[trial.number] > MOST_LOST:
            error = f"its process disappeared {MOST_LOST + 1} times without a result (killed, or out of memory)"
            self._finish(trial, Outcome(None, f"{error}; see {running.folder}", 0.0))
        else:
            self._attempt(trial)

    def _finish(self, trial: FrozenTrial, end: Outcome) -> None:
        error = {} if end.error is None else {ERROR: end.error}
        told = self.book.finish(trial, end.value, {SECONDS: round(end.seconds, 3), **error}, end.measured)
        del self.active[trial.number]
        if told is None:
            self.watch.note(
                f"trial {trial.number} was finished by another process; its result stays in {self.file.runs}"
            )
            return
        self.trials = [told if t.number == told.number else t for t in self.trials]
        top = told if told in self._front() else None  # of several goals
        self.watch.finished(told, top or best(self.trials, self.file))
        self.failed_in_a_row = 0 if end.error is None else self.failed_in_a_row + 1
        if (n := self.failed_in_a_row) >= min(HOPELESS, self.limit) and self._n_values() == 0:
            raise UserError(
                f"{n} {'trials in a row have' if n > 1 else 'trial has'} failed and none has a value: the command is "
                f"broken. The last one, trial {trial.number}: {end.error}. Mend the command, then: "
                f"jumbo run {self.file.path} --retry-failed"
            )

    # What comes next

    def _start_one(self) -> bool:
        """Puts one more trial to work: one of ours that nobody works on, an enqueued one, or a new one."""
        for trial in self._own_running():
            if trial.number not in self.active and self._adopt(trial):
                return True
        if len(self.active) >= self.file.job.workers or self._n_finished() + self._n_running() >= self.limit:
            return False
        ours = {"folder": self.folder_id, "run": uuid.uuid4().hex, "place": self.place}
        for trial in self.trials:
            if trial.state == TrialState.WAITING and self.book.claim(trial, ours):
                self.trials = self.book.trials()
                return True  # adopted in the next round
        self.exhausted = self.exhausted or self.book.exhausted(self.trials)
        if self.exhausted or self._enough():
            return False
        reserved = self.book.reserve({RUNNER: ours, **self.stopping.attributes()})
        self.trials.append(reserved)
        return self._adopt(reserved)

    def _adopt(self, trial: FrozenTrial) -> bool:
        room = len(self.active) < self.file.job.workers
        earlier = attempts(self.file.runs, trial)
        if earlier and (room or self.engine.alive(earlier[-1])):
            since = trial.datetime_start or datetime.now()
            self.active[trial.number] = Running(trial, earlier[-1], since.timestamp())
            return True
        if not room:
            return False
        try:
            trial = self._decided(trial)
        except (_Unusable, SpaceExhausted) as error:
            self.active[trial.number] = Running(trial, self.file.runs, time.time())
            self._finish(trial, Outcome(None, f"this trial has no usable parameters: {error}", 0.0))
            return True
        self._attempt(trial)
        return True

    def _decided(self, trial: FrozenTrial) -> FrozenTrial:
        """The trial with all parameters. An enqueued one may fix some of them; one of a killed process may have lost
        its own halfway."""
        space = self.file.space
        if set(space.active(trial.params)) <= set(trial.params):
            return trial
        known = trial.user_attrs.get(NUMBERS, {}).get("params", {}) if trial.params else {}
        params: Params = {**known, **trial.system_attrs.get("fixed_params", {}), **trial.params}
        mine = self._optimizer() if len(params) < space.d else None  # wrong old runs are no fault of this trial
        try:
            checked = space.checked(params)
            complete = set(space.active(checked)) <= set(checked)
            others = holding(mine, checked, trial.number) if mine and checked and not complete else None
        except ValueError as error:
            raise _Unusable(error) from None
        if complete:
            return self.book.complete(trial, space.present(checked))
        after, trial, self.trials = self.book.decide(others or self._optimizer(), trial)
        self.optimizer = self.optimizer if others else after
        return trial

    def _attempt(self, trial: FrozenTrial) -> None:
        check_folder(self.file, self.folder_id)
        folder = prepare(self.file, trial)
        self.active[trial.number] = Running(trial, folder, time.time())
        self.engine.start(folder)

    def _optimizer(self) -> Optimizer:
        if self.optimizer is None:
            self.optimizer = build_optimizer(self.file, self.limit, self.watch.note, earlier=self.book.old_runs())
        return self.optimizer

    # The study

    def _ending(self) -> Ending | None:
        """None while there is something left to start."""
        n, top = self._n_finished(), best(self.trials, self.file)
        ended = partial(Ending, finished=n, best=top, values=self._n_values(), front=self._front())
        if n >= self.limit:
            return ended("budget")
        if n + self._n_running() >= self.limit:
            return None if self._own_running() else ended("elsewhere")
        if self.exhausted:
            return ended("exhausted")
        waiting = any(t.state == TrialState.WAITING for t in self.trials)
        if self._own_running() or waiting or not self._enough():
            return None
        return ended("stopped", chance=self.stopping.chance)

    def _front(self) -> list[FrozenTrial]:
        file = self.file
        return front(self.trials, file.goals, file.space, file.limits) if file.goals else []

    def _n_values(self) -> int:
        return sum(t.value is not None for t in self.trials)

    def _enough(self) -> bool:
        """By the study's stopping rule, if it has one. The result of a running trial may revoke it."""
        if self.file.stop is None:
            return False
        self.optimizer = follow(self._optimizer(), self.trials)
        return self.stopping.reached(self.optimizer)

    def _own_running(self) -> list[FrozenTrial]:
        return [t for t in self._running() if is_here(t, self.folder_id, self.place)]

    def _running(self) -> list[FrozenTrial]:
        return [t for t in self.trials if t.state == TrialState.RUNNING and runner(t)]

    def _n_running(self) -> int:
        return len(self._running())

    def _n_finished(self) -> int:
        return n_counted(self.trials)

    def _endure(self, trouble: StorageTrouble, since: float) -> float:
        """Waits a moment; the error itself when that was tried for long enough."""
        now = time.monotonic()
        if since and now - since > PATIENCE:
            raise trouble
        if not since:
            self.watch.note(
                f"The storage is unavailable ({trouble}). Trying again for {PATIENCE:.0f} s; "
                "running trials continue and nothing is lost"
            )
        time.sleep(1.0)
        return since or now
