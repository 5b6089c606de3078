"""Training without the calculus: options, rows, splits, the order of the minibatches, rates, what is held out.

Notation
    x       (n, D)  2 T(u) - 1, what the net sees
    z, w    (n, K)  warped objective of each old task, and its weight (0: not observed there)
    D^f     old data of the target: T(u) (n_f, D) and z (n_f,)
    train   indices of the rows that a member learns from, in random order
    valid   indices of the rows that tell it when to stop

A step is one minibatch, a round is ROUND of them: one call of the compiled code in `pretrain.py`. Each of the members
of a net is trained on its own, with its own split and its own order of the rows.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.learning.features import Array, Layers, latent

Array32 = npt.NDArray[np.float32]
Index = npt.NDArray[np.int64]
Report = Callable[[int, float], None]  # steps done by this member, loss
Overall = Callable[[int, int, float], None]  # steps done by the members before, then as above

# For all who train with jax.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read when a GPU is first used
logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)  # no advice about accelerators that are not there

ROUND = 50  # minibatches per compiled call; the validation loss is looked at in between
WARM_UP = 100  # steps until the learning rate is reached
MIN_STEPS = 1_000  # a handful of rows also needs this many
REFERENCE = 1_024  # rows whose statistics standardise the blocks
MAX_VALIDATION = 4_096
SPLIT_FROM = 10  # rows; with fewer there is no validation set and training runs to its end
JUDGED_FROM = 50  # rows; whether a task with fewer can be predicted is a matter of luck
MAX_TARGET = 500  # rows of D^f in the GP likelihoods


@dataclass(frozen=True)
class Pretraining:
    """Size of the net and its training; chosen among some fifty settings by R2 and time on 600 to 50,000 FCNet rows."""

    n_l: int = 3  # hidden layers
    n_u: int = 32  # units per hidden layer
    n_z: int = 4  # latent features
    # Nets side by side, averaged: on a thousand rows one alone is luck (docs/results.md, 'What made the difference').
    members: int = 4
    dropout: float = 0.0
    learning_rate: float = 1e-2
    batch_size: int = 128
    max_epochs: int = 100
    max_steps: int = 40_000  # of all members together; ends training of very large histories before max_epochs
    patience: int = 60  # epochs without a better validation loss
    schedule: str = "cosine"  # or "constant"; both start with a warm-up
    deep_kernel: bool = False  # the warm GP's likelihood shapes the features too, not only theta_w
    # A task predicted worse than this, on rows held out, is left out (docs/results.md, 'Old runs that mislead' measures
    # that, not the number); None: all are kept.
    least_r2: float | None = 0.1
    # A task of at most so many rows has a GP, which shares in its prediction (docs/results.md, 'Nets and GPs on the old
    # rows'); 0: the net is alone.
    gp_rows: int = 1_000
    priors: bool = True  # of the hyperparameters, learned from the old tasks (priors.py)
    weight_decay: float = 250.0  # divided by the number of training rows, as a fixed prior on the weights would be

    def __post_init__(self) -> None:
        for name in ("n_l", "n_u", "n_z", "members", "batch_size", "max_epochs", "max_steps", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}, expected an integer of at least 1")
        if not isinstance(self.gp_rows, int) or self.gp_rows < 0:
            raise InputError(f"gp_rows is {self.gp_rows!r}, expected an integer of at least 0")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout!r}, expected a number in [0, 1)")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate is {self.learning_rate!r}, expected a positive number, e.g. 1e-2")
        if not 0 <= self.weight_decay < math.inf:
            raise InputError(f"weight_decay is {self.weight_decay!r}, expected a number of at least 0")
        if self.schedule not in ("cosine", "constant"):
            raise InputError(f"schedule is {self.schedule!r}, expected 'cosine' or 'constant'")


_ONE_NET: dict[str, Any] = {"members": 1, "least_r2": None, "gp_rows": 0, "priors": False}
_PAPER: dict[str, Any] = {"schedule": "constant", "weight_decay": 0.0, **_ONE_NET}
PRESETS: dict[str, Pretraining] = {
    "default": Pretraining(),
    # Paper, 'Pre-training Details'; it gives no number of epochs, ours suffice for its learning rates.
    "hpo": Pretraining(learning_rate=5e-5, max_epochs=3_000, patience=500, **_PAPER),
    "released": Pretraining(learning_rate=5e-5, max_epochs=2_000, patience=2_000, **_PAPER),  # the authors' README
    "circuit": Pretraining(
        n_u=200, n_z=32, dropout=0.5, learning_rate=3e-4, batch_size=64, max_epochs=300, patience=60, **_PAPER
    ),
    "dngo": Pretraining(n_u=50, n_z=50, **_ONE_NET),  # many basis functions for a regression (methods/dngo.py)
}


def resolve(options: Pretraining | str) -> Pretraining:
    """The options themselves, the preset of this name, or one with a whole number replaced: 'hpo:n_z=8'."""
    if isinstance(options, Pretraining):
        return options
    name, colon, change = options.partition(":")
    key, _, value = change.partition("=")
    known = [field.name for field in fields(Pretraining) if field.type == "int"]
    if name not in PRESETS or (colon and not (key in known and value.isdecimal())):
        wanted = f"Pretraining(...) or one of {list(PRESETS)}, optionally with one of {known} replaced: 'default:n_z=8'"
        raise InputError(f"options is {options!r}, expected {wanted}")
    changed: dict[str, Any] = {key: int(value)} if colon else {}
    return replace(PRESETS[name], **changed)


def tasks_to_learn(history: History) -> tuple[Task, ...]:
    """The old tasks; without any, the target's own old data."""
    tasks = tuple(t for t in history.tasks if len(t.y)) or tuple(t for t in [history.target] if t and len(t.y))
    if not tasks:
        raise InputError(
            "nothing to learn from: the history has no old task and no old data of the target; "
            "add rows to it, or run without a history"
        )
    return tasks


class Rows(NamedTuple):
    x: Any  # (m, D) float32
    z: Any  # (m, K) float32
    w: Any  # (m, K) float32, scaled so that the sum of w (g - z)^2 over the rows, divided by m, is the MSE


class Target(NamedTuple):
    """D^f, and the rows that standardise h."""

    t: Any  # (n_f, D) float64
    z: Any  # (n_f,) float64
    reference: Any  # (r, D) float32


class Data(NamedTuple):
    rows: Rows  # all n rows; w as in history.wide()
    train: Index
    valid: Index  # empty: no early stopping
    target: Target | None


def old_rows(history: History, tasks: tuple[Task, ...]) -> Rows:
    u, z, w = replace(history, tasks=tasks, target=None).wide()
    x = np.empty((len(u), len(history.space.groups)), np.float32)
    for start in range(0, len(u), 65_536):  # T(u) in pieces: a million rows are never held in float64
        part = slice(start, start + 65_536)
        x[part] = 2 * history.space.transform(u[part]) - 1
    return Rows(x, z.astype(np.float32), w.astype(np.float32))


def prepare(rows: Rows, history: History, rng: np.random.Generator) -> Data:
    """Each member has its own split, so that together they learn from all rows."""
    space, target = history.space, history.target
    train, valid = split(rows.w, rng)
    data = Data(rows, train, valid, None)
    if target is None or len(target.y) < 2:
        return data
    chosen = np.sort(rng.permutation(len(target.y))[:MAX_TARGET])
    df = Target(space.transform(target.u[chosen]), target.z[chosen], rows.x[reference_rows(train)])
    return data._replace(target=df)


def split(w: Array32, rng: np.random.Generator) -> tuple[Index, Index]:
    """80 % to train on, 20 % (at most MAX_VALIDATION) to stop by. Every task keeps a row to train on."""
    order = rng.permutation(len(w))
    n_valid = min(len(w) // 5, MAX_VALIDATION) if len(w) >= SPLIT_FROM else 0
    valid, train = order[:n_valid], order[n_valid:]
    lost = ~w[train].any(axis=0)
    back = w[valid][:, lost].any(axis=1)
    return np.concatenate([train, valid[back]]), valid[~back]


def reference_rows(train: Index) -> Index:
    return train[:REFERENCE]  # `train` is in random order


def steps_per_member(options: Pretraining, n: int) -> int:
    steps = max(MIN_STEPS, math.ceil(options.max_epochs * n / options.batch_size))
    return ROUND * math.ceil(min(steps, options.max_steps / options.members) / ROUND)


def patience_in_steps(options: Pretraining, n: int) -> float:
    return max(MIN_STEPS / 2, options.patience * n / options.batch_size)


def gp_groups(target: Target | None, n_steps: int, deep_kernel: bool) -> int:
    """How often per round the GP terms are evaluated: at every step when phi follows them, or when they cost little.
    With 500 rows one evaluation takes 40 ms; theta alone needs a few hundred."""
    if target is None:
        return 1
    small, short = len(target.z) <= 100, n_steps <= 10_000
    if deep_kernel or (small and short):
        return ROUND
    return 5 if small or short else 1


def rate_factors(name: str, n_steps: int) -> Array32:  # -> (n_steps + ROUND,) in [0, 1]
    step = np.arange(n_steps + ROUND)
    warm_up = np.minimum(1.0, (step + 1) / WARM_UP)
    cosine = 0.5 + 0.5 * np.cos(np.pi * np.minimum(1.0, step / n_steps)) if name == "cosine" else 1.0
    return (warm_up * cosine).astype(np.float32)


def head_scale(w: Array32) -> Array32:  # (m, K) -> (K,)
    """Makes w * scale, summed over the rows and divided by m, an average over each head's rows and over the heads."""
    total = w.sum(axis=0, dtype=np.float64)
    present = max(1, np.count_nonzero(total))
    scale: Array = np.divide(len(w), present * total, out=np.zeros_like(total), where=total > 0)
    return scale.astype(np.float32)


def padded(rows: Rows, index: Index) -> Rows:
    """These rows, filled up with rows of weight zero to a power of two, so that few sizes are ever compiled."""
    m, size = len(index), max(256, 1 << (len(index) - 1).bit_length())
    w = rows.w[index] * head_scale(rows.w[index]) * np.float32(size / m)
    return Rows(*(np.pad(a, ((0, size - m), (0, 0))) for a in (rows.x[index], rows.z[index], w)))


def stream(rng: np.random.Generator, n: int, size: int) -> Iterator[Index]:
    """Shuffled epochs one after the other, cut into equal pieces: no padding, no shape that depends on n."""
    left = np.empty(0, np.int64)
    while True:
        if len(left) < size:
            epochs = np.tile(np.arange(n), (math.ceil((size - len(left)) / n), 1))
            left = np.concatenate([left, rng.permuted(epochs, axis=1).ravel()])
        yield left[:size]
        left = left[size:]


@contextmanager
def progress_bar(wanted: bool, n_steps: int, rows: int, as_r2: bool) -> Iterator[Overall]:
    """`as_r2`: the loss is the share of the variance of held-out rows that is not explained."""
    if not wanted:
        yield lambda before, step, loss: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    text = TextColumn(f"{rows:,} rows{'  R2 {task.fields[r2]}' if as_r2 else ''}")
    columns = (TextColumn("learning from old runs"), BarColumn(), text, TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=n_steps, r2="-")
        yield lambda before, step, loss: bar.update(task, completed=before + step, r2=f"{max(0.0, 1 - loss):.2f}")


def validation_r2(members: Sequence[Layers], data: Sequence[Data]) -> list[float | None]:  # -> K values
    """Averaged over the members, each judged by the rows it has not learned from."""
    each = [_held_out_r2(layers, its) for layers, its in zip(members, data, strict=True)]
    return [_mean(values) for values in zip(*each, strict=True)]


def unlearned(tasks: Sequence[Task], r2: Sequence[float | None], options: Pretraining, n: int = 0) -> tuple[str, ...]:
    """The tasks that could not be predicted, by noise or for lack of rows: no guess is better than a wrong one. Of n
    rows in all at most MAX_VALIDATION judge; where that is less than a fifth, a task needs more rows to be judged."""
    if options.least_r2 is None:
        return ()
    least = JUDGED_FROM * max(1.0, n / (5 * MAX_VALIDATION))
    judged = [(t, r) for t, r in zip(tasks, r2, strict=True) if r is not None and len(t.y) >= least]
    return tuple(t.name for t, r in judged if r < options.least_r2)


def _held_out_r2(layers: Layers, data: Data) -> list[float | None]:  # -> K values
    x, z, w = (a[data.valid] for a in data.rows)
    if not len(x):
        return [None] * z.shape[1]
    weight, bias = layers[-1]
    return _r2(latent(layers, to_t(x)) @ weight + bias, z, w)


def _r2(g: Array, z: Array32, w: Array32) -> list[float | None]:  # (m, K) each -> K values
    """Share of the variance explained, per task; None where fewer than two rows or no variance can tell."""
    out: list[float | None] = []
    for k in range(z.shape[1]):
        seen = w[:, k] > 0
        actual = z[seen, k].astype(np.float64)
        spread = float(np.sum((actual - actual.mean()) ** 2)) if seen.sum() > 1 else 0.0
        out.append(1 - float(np.sum((g[seen, k] - actual) ** 2)) / spread if spread > 1e-12 else None)
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def to_t(x: Array32) -> Array:  # (m, D) -> (m, D)
    return (x.astype(np.float64) + 1) / 2
