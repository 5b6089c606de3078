"""Some parameters of a trial are fixed, such as those of an enqueued trial: the others are chosen around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jumbo_bo.space.space import GRID_LIMIT, Params

if TYPE_CHECKING:
    from jumbo_bo.optimizer import Optimizer

MOST_HELD = 2_048  # configurations to choose from


def holding(optimizer: Optimizer, fixed: Params, number: int) -> Optimizer:
    """An optimizer that moves only the other parameters, for trial `number`. What was learned is shared with it."""
    space, rng = optimizer.space, np.random.default_rng([optimizer.seed, number])
    if space.constraints:
        return optimizer.restarted(space.completions(fixed, rng, MOST_HELD))
    columns = [space.names.index(name) for name in fixed]
    values = [space.axes[i].encode([fixed[space.names[i]]])[0] for i in columns]
    if space.cardinality is not None and space.cardinality <= GRID_LIMIT:
        u = space.grid()
        u = u[np.all((np.abs(u[:, columns] - values) < 1e-9) | ~space.there(u)[:, columns], axis=1)]
    else:
        u = rng.random((MOST_HELD, space.d))
        u[:, columns] = values  # before it is known which parameters exist
    candidates = [space.present(space.decode(row) | fixed) for row in rng.permutation(u)[:MOST_HELD]]
    return optimizer.restarted(candidates)
