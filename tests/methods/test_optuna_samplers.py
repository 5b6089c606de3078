"""Optuna's samplers through our interface are Optuna's samplers."""

import math
import sys

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import UserError
from jumbo_bo.methods import OptunaSampler
from jumbo_bo.methods.optuna_samplers import distributions, to_params, to_u
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

MIXED = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "layers": IntDistribution(1, 4),
        "act": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "batch": CategoricalDistribution([64, 16, 32]),
        "drop": FloatDistribution(0.0, 0.6, step=0.2),
        "width": IntDistribution(8, 512, log=True),
    }
)
FLOATS = Space({name: FloatDistribution(-5.0, 5.0) for name in "abcd"})


def sphere(params):
    return sum((x - 1.0) ** 2 for x in params.values())


def seed_of(seed, trial):
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


@pytest.mark.parametrize("n_pending", [0, 2])
@pytest.mark.parametrize("name", ["tpe", "tpe independent", pytest.param("optuna-gp", marks=pytest.mark.interop)])
def test_same_suggestion_as_a_study_written_by_hand(name, n_pending):
    rows = [MIXED.decode(u) for u in MIXED.sample(np.random.default_rng(1), 15 + n_pending)]
    values = [math.log10(p["lr"]) ** 2 + p["layers"] + p["batch"] / 64 for p in rows[:15]]
    recipe = OptunaSampler(name.split()[0], multivariate=name != "tpe independent")
    optimizer = Optimizer(MIXED, method=recipe, seed=7)
    for params, value in zip(rows, values, strict=False):
        optimizer.tell(params, value)
    z = optimizer.view().z
    suggestion = optimizer.ask(running=rows[15:])

    space = {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "layers": IntDistribution(1, 4),
        "act": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "batch": IntDistribution(0, 2),  # the place of 16, 32, 64 in their order
        "drop": FloatDistribution(0.0, 0.6, step=0.2),
        "width": IntDistribution(8, 512, log=True),
    }
    seed = seed_of(7, 16 + n_pending)
    if recipe.sampler == "tpe":
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=recipe.multivariate)
    else:
        sampler = optuna.samplers.GPSampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for i, params in enumerate(rows):
        there = params | {"batch": [16, 32, 64].index(params["batch"])}
        known = {"value": z[i]} if i < 15 else {"state": TrialState.RUNNING}
        study.add_trial(create_trial(params=there, distributions=space, **known))
    expected = study.ask(space).params
    assert suggestion.params == expected | {
        "batch": [16, 32, 64][expected["batch"]],
        "lr": pytest.approx(expected["lr"], rel=1e-10),
        "drop": pytest.approx(expected["drop"]),
    }


def test_cma_es_equals_optunas_own_run_and_beats_chance():
    """Its state after 60 trials is that of one study asked and told 60 times, though ours is rebuilt each time and
    told standardised values."""
    optimizer = Optimizer(FLOATS, method="cma-es", seed=3)
    study = optuna.create_study(direction="minimize")
    for trial in range(60):
        suggestion = optimizer.ask()
        study.sampler = optuna.samplers.CmaEsSampler(seed=seed_of(3, trial + 1))
        asked = study.ask(dict(FLOATS.distributions))
        assert suggestion.params == pytest.approx(asked.params, abs=1e-6)
        optimizer.tell(suggestion, sphere(suggestion.params))
        study.tell(asked, sphere(asked.params))
    chance = [min(sphere(FLOATS.decode(u)) for u in FLOATS.sample(np.random.default_rng(s), 60)) for s in range(20)]
    assert optimizer.best.value < 0.5 * np.median(chance)


@pytest.mark.parametrize("name", ["tpe", "cma-es"])
def test_failures_batches_and_old_data_of_the_target_survive_a_resume(name):
    u = FLOATS.sample(np.random.default_rng(0), 12)
    target = Task("new", u, np.array([-sphere(FLOATS.decode(row)) for row in u]))
    history = History(FLOATS, (), target)
    optimizer = Optimizer(FLOATS, history, method=name, seed=1)
    for _ in range(5):
        first, second, third = optimizer.ask_many(3)
        optimizer.tell(third, sphere(third.params))
        optimizer.fail(first)
        optimizer.tell(second, sphere(second.params))
    resumed = Optimizer(FLOATS, history, method=name, seed=1)
    for params, value in optimizer.told:
        resumed.tell(params, value)
    assert resumed.ask().params == optimizer.ask().params


def test_choices_keep_their_order_and_every_point_comes_back():
    dists = distributions(MIXED)
    assert dists["batch"] == IntDistribution(0, 2)
    assert dists["act"] == CategoricalDistribution((0, 1, 2))
    assert {name: dists[name] for name in ("lr", "layers", "drop", "width")} == {
        name: MIXED.distributions[name] for name in ("lr", "layers", "drop", "width")
    }
    assert to_params(MIXED, MIXED.encode(MIXED.decode(np.full(6, 0.99)) | {"batch": 32}))["batch"] == 1
    for u in MIXED.sample(np.random.default_rng(0), 50):
        params = to_params(MIXED, u)
        assert all(dists[name]._contains(dists[name].to_internal_repr(value)) for name, value in params.items())
        np.testing.assert_allclose(to_u(MIXED, params), u, atol=1e-9)


def test_a_space_of_one_value_and_one_of_choices_only():
    for dists in ({"x": FloatDistribution(0, 1), "c": IntDistribution(3, 3)}, {"a": CategoricalDistribution("xyz")}):
        optimizer = Optimizer(Space(dists), method="cma-es")
        for i in range(3):
            optimizer.tell(optimizer.ask(), i)
        assert len(optimizer.told) == 3


def test_quiet_without_touching_the_users_log(capfd, caplog):
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    optuna.logging.enable_propagation()
    try:
        for name in ("tpe", "cma-es"):
            optimizer = Optimizer(MIXED, method=name)
            for i in range(12):
                optimizer.tell(optimizer.ask(), i)
        assert capfd.readouterr().err == caplog.text == ""
        assert optuna.logging.get_verbosity() == optuna.logging.INFO
        optuna.create_study()
        assert "new study" in caplog.text
    finally:
        optuna.logging.disable_propagation()
        optuna.logging.set_verbosity(verbosity)


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("optuna-gp", "torch", "optuna-gp"), ("cma-es", "cmaes", "baselines")]
)
def test_a_missing_package_is_told_at_once(name, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"{name} needs {package}.*jumbo-bo\[{extra}\]"):
        Optimizer(FLOATS, method=name)
