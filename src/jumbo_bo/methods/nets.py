"""Methods that know the old runs by the pretrained net of the paper."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.training import Pretraining, resolve
from jumbo_bo.methods.base import Recipe


class NetRecipe(Recipe):
    preset: str | Pretraining  # a name in PRESETS, also with a number replaced, or the options themselves

    @property
    def learns(self) -> type[FeatureNet] | None:
        return FeatureNet

    @property
    def learning(self) -> Any:
        return asdict(resolve(self.preset))

    def learn(self, history: History, seed: int) -> FeatureNet:
        from jumbo_bo.learning.pretrain import pretrain  # imports jax

        return pretrain(history, self.preset, seed, progress=True)
