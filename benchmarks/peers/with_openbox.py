"""OpenBox's transfer learning: RGPE (Feurer et al.), an ensemble of one GP per old task and one for the new trials.

The advisor is made as OpenBox's documentation does it, with `transfer_learning_history`, 'tlbo_rgpe_gp' and EI; all
else is its default, which starts with the best configurations of the old tasks.

OpenBox has no space that is a list of configurations. There its acquisition function ranks the list, and what it
takes from elsewhere (the first trials, the tenth that is random) is moved to the closest configuration not tried yet.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from columns import Column, Row, columns, decode, encode
from openbox import Advisor, History, Observation
from openbox import space as sp
from openbox.acq_optimizer.basic_maximizer import AcquisitionFunctionMaximizer
from openbox.utils.config_space import Configuration
from peer import Setting

from jumbo_bo.space.space import Params

PACKAGE = "openbox"


class Listed(AcquisitionFunctionMaximizer):
    """The listed configurations, ordered by acquisition value."""

    def __init__(self, space: sp.Space, rng: np.random.RandomState, rows: Iterable[Row]) -> None:
        super().__init__(space, rng)
        self.configurations = [Configuration(space, values=row) for row in rows]

    def _maximize(self, acquisition_function: Any, history: Any, num_points: int, **_: Any) -> list[Any]:
        return self._sort_configs_by_acq_value(acquisition_function, self.configurations)


@dataclass(eq=False)
class OpenBoxPeer:
    setting: Setting
    space: sp.Space
    advisor: Advisor
    left: list[Params] = field(default_factory=list)  # choices that were not tried yet

    def ask(self) -> Params:
        space = self.setting.space
        params = decode(space, dict(self.advisor.get_suggestion()))
        if not self.left:
            return params
        if params not in self.left:
            points = space.transform(np.array([space.encode(other) for other in (params, *self.left)]))
            params = self.left[int(np.argmin(np.sum((points[1:] - points[0]) ** 2, axis=1)))]
        self.left.remove(params)
        return params

    def tell(self, params: Params, y: float) -> None:
        self.advisor.update_observation(_observation(self.space, encode(self.setting.space, params), y))


def build(setting: Setting) -> OpenBoxPeer:
    warnings.simplefilter("ignore")
    space = sp.Space()
    space.add_variables([_variable(column) for column in columns(setting.space)])
    old = []
    for task in setting.old:
        history = History(task_id=task.name, config_space=space)
        rows: Iterable[Row] = (encode(setting.space, params) for params in task.params)
        for row, y in zip(rows, task.y, strict=True):
            history.update_observation(_observation(space, row, float(y)))
        old.append(history)
    advisor = Advisor(
        space,
        transfer_learning_history=old,
        surrogate_type="tlbo_rgpe_gp",
        acq_type="ei",
        output_dir=None,
        random_state=setting.seed,
        logger_kwargs={"stream": None, "level": "ERROR"},
    )
    if setting.choices is not None:
        listed = (encode(setting.space, params) for params in setting.choices)
        advisor.acq_optimizer = Listed(space, advisor.rng, listed)
    return OpenBoxPeer(setting, space, advisor, list(setting.choices or ()))


def _variable(column: Column) -> sp.Variable:
    if column.kind == "number":
        return sp.Real(column.name, 0.0, 1.0)
    kind = sp.Categorical if column.kind == "label" else sp.Ordinal
    return kind(column.name, list(column.levels))


def _observation(space: sp.Space, row: Row, y: float) -> Observation:
    return Observation(Configuration(space, values=row), [-y])  # OpenBox minimizes
