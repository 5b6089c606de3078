"""MT-BOHAMIANN: one Bayesian neural net over [T(u), embedding of the task], for all old tasks and the new one together.

Springenberg, Klein, Falkner, Hutter: Bayesian Optimization with Robust Bayesian Neural Networks (NeurIPS 2016).

Notation
    chains  c Markov chains over all unknowns of the net, see learning/learners/bnn.py; each moves one round per trial
    thetas  (S, p)  the states they passed through in that round
    f       (S, m)  what these S nets predict of the new task: mean and sd over S are those of the acquisition

The chains first see the old runs alone (`learn`). After each trial they go on from where they were, with its row in.
Every RESTART trials they go back to the end of `learn`, so a resumed study has at most RESTART - 1 trials to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Array, Choice, Recipe, Schedule, Surrogate, View, most_promising, space_filling
from jumbo_bo.models.gp import Blocks, Normal
from jumbo_bo.search.acquisition import noisy

if TYPE_CHECKING:
    from jumbo_bo.learning.learners.bnn import Chain, Net, Padded

State: TypeAlias = "tuple[Chain, npt.NDArray[np.float32]]"


@dataclass(frozen=True, eq=False)
class OldChains(Past):
    """The chains after the old runs, as plain numbers: the classes around them need an extra. The nets change with
    every trial, so there are no blocks."""

    shape: tuple[float, ...]
    rows: tuple[Array, ...]
    states: tuple[Array, ...]

    @property
    def net(self) -> Net:
        from jumbo_bo.learning.learners.bnn import Net

        inputs, tasks, embedding, units, layers, spread, apart = self.shape
        return Net(int(inputs), int(tasks), int(embedding), int(units), int(layers), spread, apart)

    @property
    def old(self) -> Padded:
        from jumbo_bo.learning.learners.bnn import Padded

        return Padded(*self.rows)

    @property
    def chains(self) -> Chain:
        from jumbo_bo.learning.learners.bnn import Chain

        return Chain(*self.states)


@dataclass(frozen=True)
class MTBohamiann(Recipe):
    units: int = 50  # per hidden layer
    chains: int = 4
    samples: int = 5  # states per chain and round that are used
    thin: int = 40  # steps between two states
    burn_in: int = 5  # states of a round that are passed over
    learn_rounds: int = 12
    adapt_rounds: int = 3  # after each restart
    spread: float = 1.5  # prior sd of the weights, times sqrt(fan in): larger for rougher functions
    apart: float = 0.5  # prior sd of the embeddings: smaller when the tasks are more alike
    beta0: float = 1.0  # where no data are these nets disagree more than a GP: 10 would explore for most of a run
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling trials when there are no old runs

    learns = OldChains
    needs = ("blackjax",)  # samples the nets
    old_scale = True

    def learn(self, history: History, seed: int) -> OldChains:
        from jumbo_bo.learning.learners import bnn

        space, tasks = history.space, history.tasks
        t = np.concatenate([space.transform(task.u) for task in tasks]) if tasks else np.zeros((0, len(space.groups)))
        z = np.concatenate([task.z for task in tasks]) if tasks else np.zeros(0)
        index = np.repeat(np.arange(1, len(tasks) + 1), [len(task.y) for task in tasks])
        net = bnn.Net(t.shape[1], 1 + len(tasks), units=self.units, spread=self.spread, apart=self.apart)
        chains, old = bnn.from_prior(net, self.chains, [seed, 0]), bnn.rows(t, z, index)
        past = OldChains.of(history, shape=tuple(net), rows=_plain(old), states=_plain(chains))
        if not tasks:
            return past
        chains, _ = self._move(past, chains, t[:0], z[:0], self.learn_rounds, (seed, 1))
        return replace(past, states=_plain(chains))

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        nets = self.chains * self.samples
        note = f"Highest upper bound over {nets} nets fitted to the old runs and your trials"
        return most_promising(view, self.surrogate(view), view.beta(self.schedule, self.beta0), note)

    def surrogate(self, view: View) -> Surrogate:
        from jumbo_bo.learning.learners import bnn

        past = view.past or view.kept("prior", lambda: self.learn(History.empty(view.space), view.seed))
        net = past.net
        chains, thetas = view.chain("chains", partial(self._round, view, past))
        if len(view.pending):  # as if they had returned what is expected of them
            t = view.space.transform(view.taken)
            guess = bnn.predict(thetas, net, t[len(view.u) :]).mean(axis=0)
            z = np.concatenate([view.z, guess])
            _, thetas = self._move(past, chains, t, z, 0, (view.seed, 3, len(view.u)))

        def predict(blocks: Blocks) -> Normal:
            return moments(bnn.predict(thetas, net, blocks["x"]))

        return Surrogate(predict, noisy(predict, bnn.noise(thetas, net)))

    def _round(self, view: View, past: OldChains, n: int, before: State | None) -> State:
        """The chains after n trials, and the states of their last round."""
        u, z = view.earlier(n)
        # Without old runs every trial changes the scale of the gradients.
        first, later = (self.adapt_rounds, 0) if view.past else (self.learn_rounds, 1)
        chains, adapting = (before[0], later) if before else (past.chains, first)
        return self._move(past, chains, view.space.transform(u), z, adapting, (view.seed, 2, n))

    def _move(self, past: OldChains, chains: Chain, t: Array, z: Array, adapting: int, seed: tuple[int, ...]) -> State:
        """One round given the old runs and these trials of the new task, after some that adapt V."""
        from jumbo_bo.learning.learners import bnn

        new = bnn.rows(t, z, np.zeros(len(z)), at_least=bnn.BATCH)
        for k in range(adapting + 1):
            chains, thetas = bnn.run(
                chains, (*seed, k), past.net, past.old, new, k < adapting, self.burn_in + self.samples, self.thin
            )
        return chains, thetas[:, self.burn_in :].reshape(-1, past.net.p)


def _plain(parts: Iterable[Any]) -> tuple[Array, ...]:
    return tuple(np.asarray(part) for part in parts)


def moments(f: npt.NDArray[np.float32]) -> Normal:  # (S, m) -> mean (m,), sd (m,) of the function, without noise
    return Normal(f.mean(axis=0, dtype=float), f.std(axis=0, ddof=1, dtype=float))
