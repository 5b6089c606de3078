"""Before and after the training of the members: the rows that each learns from, and the net that they become, with
its heads, the GPs on rows and the priors."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import training
from jumbo_bo.learning.failures import learn_success
from jumbo_bo.learning.features import Array, FeatureNet, layers_of, side_by_side
from jumbo_bo.learning.heads import common_heads, sample, too_many
from jumbo_bo.learning.priors import learn_priors
from jumbo_bo.learning.row_gp import RowGP, learn_row_gps
from jumbo_bo.learning.training import Array32, Data, Pretraining


class Trained(NamedTuple):
    """One member. phi and theta as in pretrain.py."""

    data: Data
    phi: Array32
    theta: Array
    info: dict[str, Any]


def prepared(history: History, tasks: tuple[Task, ...], members: int, seed: int) -> list[Data]:
    """What each member learns from: all rows or, of many tasks, those of a sample of its own."""
    rngs = [np.random.default_rng([seed, member, 0]) for member in range(members)]
    if too_many(tasks):
        return [training.prepare(training.old_rows(history, sample(tasks, rng)), history, rng) for rng in rngs]
    rows = training.old_rows(history, tasks)
    return [training.prepare(rows, history, rng) for rng in rngs]


def sizes_of(data: Data, options: Pretraining) -> tuple[int, ...]:  # D, n_u, ..., n_u, n_z, K
    return (data.rows.x.shape[1], *[options.n_u] * options.n_l, options.n_z, data.rows.z.shape[1])


def assembled(
    history: History, tasks: tuple[Task, ...], options: Pretraining, seed: int, trained: list[Trained]
) -> FeatureNet:
    members = [layers_of(m.phi.astype(np.float64), sizes_of(m.data, options)) for m in trained]
    nets, sampled = members, too_many(tasks)
    if sampled:
        layers, r2 = common_heads(members, history.space, tasks, np.random.default_rng([seed, 6]))
        nets = [layers]
    else:
        r2 = training.validation_r2(members, [m.data for m in trained])
    gps: dict[str, RowGP] = {}
    if options.gp_rows:
        gps, r2 = learn_row_gps(history.space, tasks, r2, options.gp_rows, seed)
    unlearned = training.unlearned(tasks, r2, options, 0 if sampled else len(trained[0].data.rows.x))
    kept = [k for k, t in enumerate(tasks) if t.name not in unlearned] or list(range(len(tasks)))
    nets = [(*inner, (weight[:, kept], bias[kept])) for *inner, (weight, bias) in nets]
    first = trained[0].data
    net = FeatureNet.standardised(
        side_by_side(nets),
        members=len(members),
        reference=training.to_t(first.rows.x[training.reference_rows(first.train)]),
        tasks=tuple(tasks[k].name for k in kept),
        warps=tuple(tasks[k].warp for k in kept),
        space_fingerprint=history.space.fingerprint,
        theta={} if first.target is None else _common_theta(trained),
        gps={tasks[k].name: gps[tasks[k].name] for k in kept if tasks[k].name in gps},
    )
    return replace(
        net,
        priors=learn_priors(history.space, [tasks[k] for k in kept], net, seed) if options.priors else {},
        success=learn_success(history.space, history.tasks, seed),
        info={
            "members": [m.info for m in trained],
            "rows": sum(len(t.y) for t in tasks) if sampled else len(first.rows.x),
            "validation_r2": {t.name: r for t, r in zip(tasks, r2, strict=True)},
            "unlearned": list(unlearned),
            "options": asdict(options),
            "seed": seed,
            "history": history.fingerprint,
        },
    )


def _common_theta(trained: list[Trained]) -> dict[str, Array]:
    """One net: its theta. Several: the geometric mean; distances in the members' joint h grow with their number, so
    the warm length scale does too."""
    warm, cold = np.mean([m.theta for m in trained], axis=0)
    warm[1] += 0.5 * math.log(len(trained))
    return {"warm": warm, "cold": cold}
