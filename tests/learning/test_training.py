"""Training without the calculus: rows, splits, steps, rates, and what is judged by rows held out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from sklearn.metrics import r2_score

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import training
from jumbo_bo.learning.training import Pretraining, Rows, Target
from jumbo_bo.space.space import Array, Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def task(name: str, n: int, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    return Task(name, SPACE.sample(rng, n), rng.normal(size=n))


def target(n: int) -> Target:
    return Target(np.zeros((n, 2)), np.zeros(n), np.zeros((1, 2)))


def test_a_task_is_judged_from_fifty_rows_on() -> None:
    """Whether fewer rows can be predicted is a matter of luck, and a task is not thrown away by luck."""
    tasks = [task("noise", 50), task("too few", 49), task("good", 50), task("not known", 50)]
    r2 = [-1.0, -1.0, 0.1, None]
    assert training.unlearned(tasks, r2, Pretraining(least_r2=0.1)) == ("noise",)
    assert training.unlearned(tasks, r2, Pretraining(least_r2=0.2)) == ("noise", "good")
    assert training.unlearned(tasks, r2, Pretraining(least_r2=None)) == ()


def test_a_task_is_not_judged_by_a_handful_of_rows():
    """Of a million rows 4,096 judge, so four of a task with a thousand."""
    tasks = [Task("few", np.zeros((1_000, 1)), np.arange(1_000.0))]
    few = Pretraining(least_r2=0.1)
    assert training.unlearned(tasks, [-1_398.0], few, n=1_000_000) == ()
    assert training.unlearned(tasks, [-1_398.0], few, n=20_000) == ("few",)


def test_old_rows_are_what_the_net_sees() -> None:
    first, second = task("first", 5), task("second", 3, seed=1)
    rows = training.old_rows(History(SPACE, (first, second), task("new", 4, seed=2)), (first, second))
    assert rows.x.dtype == rows.z.dtype == rows.w.dtype == np.float32
    for k, t in enumerate((first, second)):
        seen = rows.w[:, k] > 0
        order = np.lexsort(rows.x[seen].T)
        expected = np.lexsort((2 * t.u - 1).astype(np.float32).T)
        np.testing.assert_allclose(rows.x[seen][order], 2 * t.u[expected] - 1, atol=1e-6)
        np.testing.assert_allclose(rows.z[seen, k][order], t.z[expected], atol=1e-6)
    assert len(rows.x) == 8  # the target is not among them


def test_long_histories_are_transformed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    many, pieces, whole = task("many", 70_000), [], Space.transform

    def spy(self: Space, u: Array) -> Array:
        pieces.append(len(u))
        return whole(self, u)

    monkeypatch.setattr(Space, "transform", spy)
    rows = training.old_rows(History(SPACE, (many,)), (many,))
    assert max(pieces) < 70_000 == sum(pieces)
    assert np.abs(rows.x).max() <= 1
    np.testing.assert_allclose(np.sort(rows.x[:, 0]), np.sort(2 * many.u[:, 0] - 1), atol=1e-6)


def test_target_rows_are_limited_and_two_are_needed() -> None:
    old = task("old", 30)
    rows = training.old_rows(History(SPACE, (old,)), (old,))

    def prepared(n: int) -> training.Data:
        history = History(SPACE, (old,), task("new", n, seed=2) if n else None)
        return training.prepare(rows, history, np.random.default_rng(0))

    assert prepared(0).target is None
    assert prepared(1).target is None
    two = prepared(2)
    assert two.target is not None
    assert two.target.t.shape == (2, 2)
    np.testing.assert_array_equal(two.target.reference, rows.x[two.train])
    many = prepared(501).target
    assert many is not None
    assert len(many.z) == 500


@pytest.mark.parametrize(
    ("n", "valid"), [(9, 0), (10, 2), (14, 2), (15, 3), (100, 20), (20_000, 4_000), (30_000, 4_096)]
)
def test_a_fifth_is_held_out(n: int, valid: int) -> None:
    train, held = training.split(np.ones((n, 1), np.float32), np.random.default_rng(0))
    assert (len(train), len(held)) == (n - valid, valid)
    assert sorted([*train, *held]) == list(range(n))
    assert list(train) != sorted(train)  # its first rows are a sample


def test_every_task_keeps_a_row_to_train_on() -> None:
    w = np.zeros((40, 11), np.float32)
    w[:, 0] = 1
    w[range(10), range(1, 11)] = 1  # ten tasks of one row each
    train, valid = training.split(w, np.random.default_rng(0))
    assert w[train].any(axis=0).all()
    assert sorted([*train, *valid]) == list(range(40))


def test_reference_rows_are_a_bounded_sample_of_the_training_rows() -> None:
    assert training.reference_rows(np.arange(2_000)).tolist() == list(range(1_024))
    assert training.reference_rows(np.arange(7)).tolist() == list(range(7))


def test_steps() -> None:
    options = Pretraining(members=4, batch_size=100, max_epochs=10, max_steps=40_000)
    assert training.steps_per_member(options, 50) == 1_000  # a handful of rows needs the least number too
    assert training.steps_per_member(options, 20_000) == 2_000  # 10 epochs of 200 minibatches
    assert training.steps_per_member(options, 20_001) == 2_050  # whole rounds
    assert training.steps_per_member(options, 10**7) == 10_000  # the members share max_steps
    assert training.patience_in_steps(replace(options, patience=5), 200) == 500
    assert training.patience_in_steps(replace(options, patience=5), 100_000) == 5_000


@pytest.mark.parametrize(
    ("rows", "steps", "deep", "groups"),
    [
        (None, 100, False, 1),
        (100, 10_000, False, 50),
        (101, 10_000, False, 5),
        (100, 10_001, False, 5),
        (101, 10_001, False, 1),
        (500, 50_000, True, 50),
    ],
)
def test_gp_terms_are_evaluated_less_often_when_they_are_dear(
    rows: int | None, steps: int, deep: bool, groups: int
) -> None:
    assert training.gp_groups(None if rows is None else target(rows), steps, deep) == groups


def test_rates_warm_up_and_fade() -> None:
    constant, cosine = (training.rate_factors(name, 1_000) for name in ("constant", "cosine"))
    assert len(constant) == len(cosine) == 1_050  # the last round looks ahead
    assert constant.dtype == np.float32
    np.testing.assert_allclose(constant[:100], np.arange(1, 101) / 100, rtol=1e-6)
    assert (constant[100:] == 1).all()
    np.testing.assert_allclose(
        cosine[[250, 500, 750]], [0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125)], rtol=1e-5
    )
    assert cosine[1_000:].max() < 1e-6


def test_head_scale_averages_over_rows_and_heads() -> None:
    w = np.array([[1, 0, 2], [1, 0, 0], [2, 0, 1], [0, 0, 0]], np.float32)
    scale = training.head_scale(w)
    assert scale[1] == 0  # a head without rows
    np.testing.assert_allclose((w * scale).sum(axis=0) / 4, [0.5, 0.0, 0.5], rtol=1e-6)
    assert training.head_scale(np.zeros((3, 2), np.float32)).tolist() == [0, 0]
    assert training.head_scale(np.ones((4, 1), np.float32)).tolist() == [1]


@pytest.mark.parametrize(("m", "size"), [(1, 256), (256, 256), (257, 512), (513, 1_024)])
def test_padding_changes_no_average(m: int, size: int) -> None:
    rng = np.random.default_rng(0)
    rows = Rows(*(rng.random((600, 2)).astype(np.float32) for _ in range(3)))
    index = rng.permutation(600)[:m]
    padded = training.padded(rows, index)
    assert {a.shape for a in padded} == {(size, 2)}
    assert (padded.w[m:] == 0).all()
    np.testing.assert_array_equal(padded.x[:m], rows.x[index])
    np.testing.assert_array_equal(padded.z[:m], rows.z[index])
    own = np.average(rows.z[index], weights=rows.w[index], axis=0).mean()
    assert np.sum(padded.w * padded.z) / size == pytest.approx(own, rel=1e-5)


def test_minibatches_follow_shuffled_epochs() -> None:
    batches = training.stream(np.random.default_rng(0), 6, 4)
    seen = np.concatenate([next(batches) for _ in range(6)])
    epochs = seen.reshape(4, 6)
    assert all(sorted(epoch) == list(range(6)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    larger = next(training.stream(np.random.default_rng(0), 3, 7))
    assert len(larger) == 7
    assert np.bincount(larger).min() >= 2


def layers(weight: float) -> tuple[tuple[Array, Array], ...]:
    """A net of one input, tanh twice, and two heads: the latent feature and its negative."""
    one, zero = np.array([[weight]]), np.zeros(1)
    return ((one, zero), (one, zero), (np.array([[1.0, -1.0]]), np.array([0.0, 0.1])))


def test_r2_of_the_rows_held_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (40, 1)).astype(np.float32)
    z = np.hstack([x, x + 0.3]).astype(np.float32)
    w = np.ones((40, 2), np.float32)
    w[:30, 1] = 0  # the second head has ten rows
    data = training.Data(Rows(x, z, w), np.arange(20), np.arange(20, 40), None)
    nets = [layers(1.0), layers(0.7)]

    def expected(weight: float) -> tuple[float, float]:
        h = np.tanh(weight * np.tanh(weight * x[:, 0].astype(float)))
        return r2_score(z[20:, 0], h[20:]), r2_score(z[30:, 1], 0.1 - h[30:])

    both = np.mean([expected(1.0), expected(0.7)], axis=0)
    assert training.validation_r2(nets, [data, data]) == pytest.approx(both, rel=1e-6)
    none = data._replace(valid=np.arange(0))
    assert training.validation_r2(nets[:1], [none]) == [None, None]
    assert training.validation_r2(nets, [none, data]) == pytest.approx(expected(0.7), rel=1e-6)  # of those that know


def test_r2_is_not_known_from_one_row_or_one_value() -> None:
    x = np.zeros((3, 1), np.float32)
    z = np.array([[1, 5], [2, 5], [3, 5]], np.float32)
    w = np.array([[1, 1], [0, 1], [0, 1]], np.float32)
    data = training.Data(Rows(x, z, w), np.arange(0), np.arange(3), None)
    assert training.validation_r2([layers(1.0)], [data]) == [None, None]
    two = Rows(x, z, np.array([[1, 1], [1, 1], [0, 1]], np.float32))
    assert training.validation_r2([layers(1.0)], [data._replace(rows=two)])[0] is not None


def test_what_there_is_to_learn_from() -> None:
    old, empty, new = task("old", 5), task("empty", 0), task("new", 3)
    assert training.tasks_to_learn(History(SPACE, (empty, old), new)) == (old,)
    assert training.tasks_to_learn(History(SPACE, (), new)) == (new,)
    with pytest.raises(ValueError, match=r"nothing to learn from: .*; add rows to it, or run without a history$"):
        training.tasks_to_learn(History(SPACE, (empty,)))


@pytest.mark.parametrize(
    "bad",
    [
        {"n_l": 0}, {"n_u": 0}, {"n_z": 0}, {"members": 0}, {"batch_size": 0}, {"max_epochs": 0}, {"max_steps": 0},
        {"patience": 0}, {"n_u": 2.5}, {"gp_rows": -1}, {"gp_rows": 0.5}, {"dropout": 1.0}, {"dropout": -0.1},
        {"learning_rate": 0.0}, {"learning_rate": math.inf}, {"schedule": "step"}, {"weight_decay": -1.0},
        {"weight_decay": math.inf},
    ],
)  # fmt: skip
def test_wrong_options_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=rf"^{next(iter(bad))} is .*expected"):
        Pretraining(**bad)  # type: ignore[arg-type]


def test_the_smallest_options_are_allowed() -> None:
    ones = dict.fromkeys(("n_l", "n_u", "n_z", "members", "batch_size", "max_epochs", "max_steps", "patience"), 1)
    Pretraining(**ones, gp_rows=0, dropout=0.0, weight_decay=0.0, schedule="constant")  # type: ignore[arg-type]


def test_presets_by_name() -> None:
    assert training.resolve("hpo:n_z=8") == replace(training.PRESETS["hpo"], n_z=8)
    assert training.resolve("default") is not None
    dngo = training.PRESETS["dngo"]
    assert (dngo.n_u, dngo.n_z, dngo.members, dngo.least_r2, dngo.gp_rows) == (50, 50, 1, None, 0)  # Snoek et al. 2015
    own = Pretraining(n_z=3)
    assert training.resolve(own) is own
    for wrong in ("hpoo", "hpo:nz=8", "hpo:n_z=many", "hpo:", "hpo:dropout=1"):
        with pytest.raises(ValueError, match=r"expected Pretraining.* or one of"):
            training.resolve(wrong)
