"""Random search under the contract of peer.py: the shortest peer, for tests and as an example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from peer import Setting

from jumbo_bo.space.space import Params

PACKAGE = "numpy"


@dataclass(frozen=True, eq=False)
class Random:
    setting: Setting
    rng: np.random.Generator

    def ask(self) -> Params:
        choices, space = self.setting.choices, self.setting.space
        return choices[self.rng.integers(len(choices))] if choices else space.decode(space.sample(self.rng, 1)[0])

    def tell(self, params: Params, y: float) -> None:
        pass


def build(setting: Setting) -> Random:
    return Random(setting, np.random.default_rng(setting.seed))
