"""What the readers of all trackers share, and the stores of MLflow."""

from __future__ import annotations

import sqlite3
import sys

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from tracked import SPACE, reasons, values, write_rows

from jumbo_bo.data.trackers import from_mlflow, from_wandb
from jumbo_bo.errors import UserError
from jumbo_bo.space.space import Space


def test_renamed_new_and_missing_parameters(tmp_path):
    space = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "depth": IntDistribution(1, 4)})
    rows = [
        {"config": {"learning_rate": 1e-3}, "summary": {"loss": 1.0}},  # before depth existed
        {"config": {"lr": 1e-2, "depth": 3}, "summary": {"loss": 2.0}},
        {"config": {"lr": None, "learning_rate": 1e-4, "depth": 4}, "summary": {"loss": 3.0}},
        {"config": {"lr": 1e-2, "depth": 9}, "summary": {"loss": 4.0}},  # out of the new range
        {"config": {"other": 1}, "summary": {"loss": 5.0}},
    ]
    options = {"objective": "loss", "rename": {"learning_rate": "lr"}}
    h = from_wandb(write_rows(tmp_path / "runs.json", rows), space, **options, fill={"depth": 2})
    assert [space.decode(u) for u in h.tasks[0].u] == [
        {"lr": 1e-3, "depth": 2},
        {"lr": 1e-2, "depth": 3},
        {"lr": 1e-4, "depth": 4},
    ]
    assert reasons(h) == {
        "runs": {"run has none of the parameters 'lr', 'depth'": 1, "depth is out of range": 1},
    }
    without = from_wandb(tmp_path / "runs.json", space, **options)
    assert reasons(without)["runs"]["depth is empty"] == 1


def test_none_as_a_choice(tmp_path):
    space = Space({"decay": CategoricalDistribution([None, "cosine"])})
    rows = [{"config": {"decay": d}, "summary": {"loss": y}} for d, y in ((None, 1.0), ("cosine", 2.0), (None, 3.0))]
    h = from_wandb(write_rows(tmp_path / "runs.json", rows), space, objective="loss")
    assert [space.decode(u)["decay"] for u in h.tasks[0].u] == [None, "cosine", None]


def test_a_parameter_named_like_the_metric(tmp_path):
    space = Space({"loss": CategoricalDistribution(["mse", "mae"])})
    rows = [{"config": {"loss": k}, "summary": {"loss": y}} for k, y in (("mse", 1.0), ("mae", 2.0), ("mae", "NaN"))]
    h = from_wandb(write_rows(tmp_path / "runs.json", rows), space, objective="loss")
    assert values(h) == {"runs": [1.0, 2.0]}
    assert [space.decode(u)["loss"] for u in h.tasks[0].u] == ["mse", "mae"]
    assert reasons(h) == {"runs": {"metric loss is not a number": 1}}


# MLflow; the rest is in tests/integration/test_mlflow.py


def test_mlflow_missing_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UserError, match=r"pip install 'jumbo-bo\[mlflow\]'"):
        from_mlflow("sqlite:///mlflow.db", SPACE, objective="loss")


@pytest.fixture
def fake_mlflow(monkeypatch):
    """Only the import succeeds: what follows must fail before a client is made."""
    import types

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(MlflowClient=None))


def test_mlflow_stores_are_checked_before_mlflow_could_create_them(tmp_path, monkeypatch, fake_mlflow):
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("optuna.db") as db:
        db.execute("CREATE TABLE studies (id INTEGER)")
    db.close()
    (tmp_path / "text.db").write_text("not a database, but a text that is long enough " * 20)
    (tmp_path / "project").mkdir()
    for uri, message in [
        ("sqlite:///gone.db", "gone.db does not exist; check the tracking store 'sqlite:///gone.db'"),
        ("sqlite:///optuna.db", r"optuna.db is not an MLflow tracking store; it has the tables \['studies'\]"),
        ("sqlite:///text.db", "text.db cannot be read as an MLflow tracking store: file is not a database"),
        ("mlruns", "mlruns does not exist; looked from "),
        ("project", "project contains no MLflow experiments; pass the folder that does, usually called mlruns"),
        ((tmp_path / "project").as_uri(), "project contains no MLflow experiments"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            from_mlflow(uri, SPACE, objective="loss")
    with pytest.raises(UserError, match=r"mlflow:\*\*\*@db/mlflow: opening a database directly may change its tables"):
        from_mlflow("postgresql://mlflow:secret@db/mlflow", SPACE, objective="loss")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["optuna.db", "project", "text.db"]


# Correlations between tasks
