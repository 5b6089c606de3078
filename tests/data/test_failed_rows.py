"""Old runs without a value are failures of their task."""

from __future__ import annotations

import math

import numpy as np
import optuna
import polars as pl
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_study
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def test_rows_of_a_table():
    frame = pl.DataFrame(
        {
            "task": ["x", "x", "x", "x", "x", "y", "y", "z"],
            "a": [0.1, 0.2, 0.3, 0.4, 2.0, 0.5, 0.6, 0.7],
            "b": [0.5] * 8,
            "loss": [1.0, 2.0, math.nan, math.inf, math.nan, 3.0, 4.0, None],
        }
    )
    history = History.from_frame(frame, SPACE, task="task", objective="loss")
    x, y = history.tasks  # nothing is kept of a task without a value
    np.testing.assert_allclose(x.failed, [[0.3, 0.5], [0.4, 0.5]])  # not the one outside the space
    assert y.failed.shape == (0, 2)
    assert "2 failed" in history.summary()
    both = history + History.from_frame(frame, SPACE, task="task", objective="loss")
    assert len(both.tasks[0].failed) == 4
    clean = frame.filter(pl.col("loss").is_finite())
    assert history.fingerprint != History.from_frame(clean, SPACE, task="task", objective="loss").fingerprint


def test_trials_of_a_study():
    study = optuna.create_study(study_name="old")
    for a, value in ((0.1, 1.0), (0.2, 2.0), (0.3, None)):
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        params = {"a": a, "b": 0.5}
        study.add_trial(create_trial(state=state, value=value, params=params, distributions=SPACE.distributions))
    study.add_trial(create_trial(state=TrialState.FAIL))  # before it had parameters
    (task,) = from_study(study, SPACE).tasks
    np.testing.assert_allclose(task.failed, [[0.3, 0.5]])
