"""Ax's transfer learning (BOTL): a multi-task GP over the old tasks and the new one, and Ax's own model selection.

The old tasks are auxiliary experiments of the purpose TRANSFERABLE_EXPERIMENT, and the generator specs are those of
`transfer_learning_generator_specs_constructor` with its defaults: before each trial a MultiTaskGP on all tasks and the
usual GP on the new trials alone are fitted, and the one with the better rank correlation in cross-validation chooses.

Ax has no space that is a list of configurations: it fits its models, and its acquisition function is evaluated for
every configuration that was not tried yet. That function needs one finished trial, so the first trial is the
configuration with the best prediction of the multi-task GP.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from ax.adapter.transfer_learning.adapter import transfer_learning_generator_specs_constructor
from ax.core.arm import Arm
from ax.core.auxiliary import AuxiliaryExperimentPurpose
from ax.core.auxiliary_source import AuxiliarySource
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.observation import ObservationFeatures
from ax.core.optimization_config import OptimizationConfig
from ax.core.parameter import ChoiceParameter, Parameter, ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from columns import Column, Row, columns, decode, encode
from peer import Setting

from jumbo_bo.space.space import Params

PACKAGE = "ax-platform"
RANDOM = 1_000  # configurations
PURPOSE = AuxiliaryExperimentPurpose.TRANSFERABLE_EXPERIMENT


@dataclass(eq=False)
class AxPeer:
    setting: Setting
    experiment: Experiment
    strategy: GenerationStrategy
    left: list[Params] = field(default_factory=list)  # choices that were not tried yet

    def ask(self) -> Params:
        adapter: Any = self.strategy.fit(self.experiment)
        if not self.experiment.trials:
            params = self._best(lambda points: adapter.predict(points)[0]["y"], self.left or self._first())
        elif self.left:
            params = self._best(adapter.evaluate_acquisition_function, self.left)
        else:
            return decode(self.setting.space, adapter.gen(n=1).arms[0].parameters)
        self.left = [other for other in self.left if other != params]
        return params

    def _best(self, score: Callable[[list[ObservationFeatures]], Sequence[float]], among: Sequence[Params]) -> Params:
        points = [ObservationFeatures(parameters=encode(self.setting.space, params)) for params in among]
        return among[int(np.argmax(score(points)))]

    def _first(self) -> list[Params]:
        """Where the first trial of a space without a list may be: the old rows, and others at random."""
        space = self.setting.space
        others = space.sample(np.random.default_rng(self.setting.seed), RANDOM)
        return [params for task in self.setting.old for params in task.params] + [space.decode(u) for u in others]

    def tell(self, params: Params, y: float) -> None:
        _attach(self.experiment, [(encode(self.setting.space, params), y)])


def build(setting: Setting) -> AxPeer:
    logging.disable(logging.ERROR)  # one line per fit, and a traceback where too few trials are there to compare models
    warnings.simplefilter("ignore")
    torch.manual_seed(setting.seed)
    space = SearchSpace([_parameter(column) for column in columns(setting.space)])
    sources = []
    for task in setting.old:
        old = Experiment(search_space=space, name=task.name, tracking_metrics=[Metric("y")])
        _attach(old, zip((encode(setting.space, params) for params in task.params), task.y, strict=True))
        sources.append(AuxiliarySource(old))
    experiment = Experiment(
        search_space=space,
        name="new",
        optimization_config=OptimizationConfig(Objective(metric=Metric("y"), minimize=False)),
        auxiliary_experiments_by_purpose={PURPOSE: sources},
    )
    specs, selector = transfer_learning_generator_specs_constructor(fit_tracking_metrics=False)
    node = GenerationNode(name="BOTL", generator_specs=specs, best_model_selector=selector)
    return AxPeer(setting, experiment, GenerationStrategy(nodes=[node]), list(setting.choices or ()))


def _parameter(column: Column) -> Parameter:
    if column.kind == "number":
        return RangeParameter(column.name, ParameterType.FLOAT, 0.0, 1.0)
    kind = ParameterType.STRING if column.kind == "label" else ParameterType.FLOAT
    return ChoiceParameter(column.name, kind, list(column.levels), is_ordered=column.kind == "ordered")


def _attach(experiment: Experiment, rows: Iterable[tuple[Row, float]]) -> None:
    for row, y in rows:
        trial = experiment.new_trial().add_arm(Arm(parameters=row))
        trial.mark_running(no_runner_required=True)
        cells = {"trial_index": trial.index, "arm_name": trial.arm.name, "metric_name": "y", "metric_signature": "y"}
        experiment.attach_data(Data(df=pd.DataFrame([{**cells, "mean": float(y), "sem": math.nan}])))
        trial.mark_completed()
