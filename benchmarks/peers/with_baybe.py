"""BayBE's transfer learning: a campaign whose search space has a TaskParameter, told the old rows as measurements.

All else is BayBE's default. Where the configurations can be listed the search space is made from that list
(`SearchSpace.from_dataframe`), and BayBE does not recommend what was measured; elsewhere it optimizes over the numbers.
Labels are one-hot, as for all methods here: nobody is told the molecules behind them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from baybe import Campaign
from baybe.parameters import (
    CategoricalParameter,
    NumericalContinuousParameter,
    NumericalDiscreteParameter,
    TaskParameter,
)
from baybe.parameters.base import Parameter
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget
from columns import Column, Row, columns, decode, encode
from peer import Setting

from jumbo_bo.space.space import Params

PACKAGE = "baybe"
TASK, NEW, VALUE = "task of the campaign", "new", "value of the campaign"  # no parameter's name


@dataclass(frozen=True, eq=False)
class BaybePeer:
    setting: Setting
    campaign: Campaign

    def ask(self) -> Params:
        found = self.campaign.recommend(batch_size=1)
        if self.setting.choices is not None:
            return self.setting.choices[int(found.index[0])]
        return decode(self.setting.space, found.iloc[0].to_dict())

    def tell(self, params: Params, y: float) -> None:
        self.add([(encode(self.setting.space, params), NEW, y)])

    def add(self, rows: Sequence[tuple[Row, str, float]]) -> None:
        self.campaign.add_measurements(pd.DataFrame([{**row, TASK: task, VALUE: y} for row, task, y in rows]))


def build(setting: Setting) -> BaybePeer:
    warnings.simplefilter("ignore")
    torch.manual_seed(setting.seed)
    task = TaskParameter(TASK, (NEW, *(f"old {task.name}" for task in setting.old)), active_values=(NEW,))
    listed = None
    if setting.choices is not None:
        listed = pd.DataFrame([{**encode(setting.space, params), TASK: NEW} for params in setting.choices])
    parameters = [*(_parameter(column, listed) for column in columns(setting.space)), task]
    space = SearchSpace.from_product(parameters) if listed is None else SearchSpace.from_dataframe(listed, parameters)
    peer = BaybePeer(setting, Campaign(space, NumericalTarget(VALUE)))
    for old in setting.old:
        rows = ((encode(setting.space, params), f"old {old.name}") for params in old.params)
        peer.add([(row, name, float(y)) for (row, name), y in zip(rows, old.y, strict=True)])
    return peer


def _parameter(column: Column, listed: pd.DataFrame | None) -> Parameter:
    if column.kind == "label":
        return CategoricalParameter(column.name, column.levels)
    if column.kind == "ordered":
        return NumericalDiscreteParameter(column.name, column.levels)
    if listed is not None:
        return NumericalDiscreteParameter(column.name, sorted(set(listed[column.name])))
    return NumericalContinuousParameter(column.name, (0.0, 1.0))
