"""A study on a server that is restarted: what could not be done is tried again, and nothing is done twice."""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

PATIENCE = 60.0  # seconds that a server may be away
LONGEST = 5.0  # seconds between two attempts
TOKEN = "jumbo: made by"  # system attribute: by it a trial is found again when the answer of the server was lost
Made = TypeVar("Made")

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


def _patient(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def again(self: PatientStorage, *args: Any, **options: Any) -> Any:
        return self._patiently(lambda: method(self, *args, **options))

    return again


class PatientStorage(RDBStorage):
    """Optuna's storage of a database server. An error of the connection is not the end: the same is tried again for
    PATIENCE seconds."""

    # All that Optuna's cache asks of the storage behind it. What follows writes and may be done twice without harm.
    delete_study = _patient(RDBStorage.delete_study)
    get_all_studies = _patient(RDBStorage.get_all_studies)
    get_study_directions = _patient(RDBStorage.get_study_directions)
    get_study_id_from_name = _patient(RDBStorage.get_study_id_from_name)
    get_study_name_from_id = _patient(RDBStorage.get_study_name_from_id)
    get_study_system_attrs = _patient(RDBStorage.get_study_system_attrs)
    get_study_user_attrs = _patient(RDBStorage.get_study_user_attrs)
    get_trial = _patient(RDBStorage.get_trial)
    get_trial_id_from_study_id_trial_number = _patient(RDBStorage.get_trial_id_from_study_id_trial_number)
    record_heartbeat = _patient(RDBStorage.record_heartbeat)
    set_study_system_attr = _patient(RDBStorage.set_study_system_attr)
    set_study_user_attr = _patient(RDBStorage.set_study_user_attr)
    set_trial_intermediate_value = _patient(RDBStorage.set_trial_intermediate_value)
    set_trial_system_attr = _patient(RDBStorage.set_trial_system_attr)
    set_trial_user_attr = _patient(RDBStorage.set_trial_user_attr)
    _get_best_trial_id = _patient(RDBStorage._get_best_trial_id)
    _get_stale_trial_ids = _patient(RDBStorage._get_stale_trial_ids)
    _get_trials = _patient(RDBStorage._get_trials)
    _set_trial_param = _patient(RDBStorage._set_trial_param)

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        template = create_trial(state=TrialState.RUNNING) if template_trial is None else copy.deepcopy(template_trial)
        token, asked = uuid.uuid4().hex, False
        template.system_attrs = {**template.system_attrs, TOKEN: token}

        def made() -> FrozenTrial:
            nonlocal asked
            if asked:
                found: list[FrozenTrial] = self._get_trials(study_id, None, set(), -1)
                for trial in reversed(found):
                    if trial.system_attrs.get(TOKEN) == token:
                        return trial
            asked = True
            return super(PatientStorage, self)._create_new_trial(study_id, template)

        return self._patiently(made)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        asked = False

        def done() -> bool:
            nonlocal asked
            first, asked = not asked, True
            try:
                return super(PatientStorage, self).set_trial_state_values(trial_id, state, values)
            except UpdateFinishedTrialError:
                found = self.get_trial(trial_id)
                if not first and (found.state, found.values) == (state, values and list(values)):
                    return True  # by us: only the answer was lost
                raise

        return self._patiently(done)

    def _patiently(self, call: Callable[[], Made]) -> Made:
        deadline, wait = 0.0, 0.1
        while True:
            try:
                return call()
            except Exception as error:
                if not _is_of_the_connection(error) or (deadline and time.monotonic() > deadline):
                    raise
                if not deadline:
                    deadline = time.monotonic() + PATIENCE
                    _logger.warning(
                        f"The database does not answer ({_said(error)}). Trying again for {PATIENCE:.0f} s."
                    )
            self.remove_session()
            self.engine.dispose()  # connections from before
            time.sleep(wait)
            wait = min(LONGEST, 2 * wait)


def _is_of_the_connection(error: BaseException | None) -> bool:
    """Also when what is raised is what the first error has led to."""
    from sqlalchemy.exc import InterfaceError, OperationalError, PendingRollbackError

    while error is not None:
        if isinstance(error, OperationalError | InterfaceError | PendingRollbackError):
            return True
        error = error.__cause__
    return False


def _said(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
