"""MLflow's own client writes a store, from_mlflow reads it: SQLite, a folder, and a running server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from ports import free_port
from typer.testing import CliRunner

from jumbo_bo import cli
from jumbo_bo.data.trackers import from_mlflow
from jumbo_bo.space.space import Space
from jumbo_bo.study import toml
from jumbo_bo.study.study_file import load
from resetting import resetting

# Before the import: MLflow reads them then.
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
mlflow = pytest.importorskip("mlflow", reason="needs the PyPI package mlflow (make test-integration installs it)")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:.*noload:DeprecationWarning"),  # MLflow's tables under SQLAlchemy 2.1
    pytest.mark.filterwarnings("ignore:.*filesystem tracking backend:FutureWarning"),
]

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "depth": IntDistribution(0, 20),
        "norm": CategoricalDistribution([True, False]),
        "decay": CategoricalDistribution([None, "cosine"]),
    }
)


def params(i: int) -> dict[str, object]:
    return {"lr": 10.0 ** -(i % 5), "depth": i, "norm": i % 2 == 0, "decay": None if i % 3 else "cosine"}


def fill(uri: str) -> dict[str, list[float]]:
    """Twenty runs in two experiments; what a reader must find, by experiment."""
    from mlflow.entities import Metric, Param

    client = mlflow.MlflowClient(tracking_uri=uri)
    expected: dict[str, list[float]] = {"mnist": [], "svhn": []}
    for name in expected:
        experiment = client.create_experiment(name)
        for i in range(10):
            tags = {"dataset": f"{name}-{i % 2}"} if i else {}
            run = client.create_run(experiment, start_time=1000 * (i + 1), tags=tags, run_name=f"run{i}").info.run_id
            told = [Param(key, str(value)) for key, value in params(i).items()]
            client.log_batch(run, [Metric("loss", 10.0 * i + step, step, step) for step in range(3)], told)
            client.set_terminated(run, "FINISHED")
            expected[name].append(10.0 * i + 2)
    unlucky = client.get_experiment_by_name("svhn").experiment_id
    for status, metric in (("FAILED", "loss"), ("KILLED", "loss"), (None, "loss"), ("FINISHED", "accuracy")):
        run = client.create_run(unlucky).info.run_id
        client.log_param(run, "lr", 0.1)
        client.log_metric(run, metric, -1.0)
        if status:
            client.set_terminated(run, status)
    deleted = client.create_run(unlucky).info.run_id
    client.log_metric(deleted, "loss", -1.0)
    client.set_terminated(deleted, "FINISHED")
    client.delete_run(deleted)
    gone = client.create_experiment("gone")
    client.delete_experiment(gone)
    return expected


@pytest.fixture(params=["sqlite", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/mlflow.db"  # MLflow keeps stores open by address, so each needs its own
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return str(tmp_path / "mlruns")


def check(history, expected: dict[str, list[float]]) -> None:
    assert {t.name: (-t.y).tolist() for t in history.tasks} == expected
    for task in history.tasks:
        assert [SPACE.decode(u) for u in task.u] == [params(i) for i in range(10)]
    dropped = {task: {d.reason: d.count for d in drops} for r in history.reports for task, drops in r.dropped.items()}
    assert dropped == {
        "svhn": {"run failed": 1, "run was killed": 1, "run is not finished": 1, "run has no metric 'loss'": 1}
    }


def test_a_store_is_read_and_left_as_it_was(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(store)
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    before = contents(tmp_path)
    check(from_mlflow(store, SPACE, objective="loss"), expected)
    for same in ["sqlite:///mlflow.db"] if "sqlite" in store else ["mlruns", Path(store), Path(store).as_uri()]:
        check(from_mlflow(same, SPACE, objective="loss"), expected)
    assert contents(tmp_path) == before
    assert "MLFLOW_ALLOW_FILE_STORE" not in os.environ


def test_jumbo_find(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(store)
    before = contents(tmp_path)
    parameters = {name: toml.parameter(dist) for name, dist in SPACE.distributions.items() if name != "decay"}
    lines = [f"{name} = {toml.written(made)}" for name, made in parameters.items()]
    (tmp_path / "study.toml").write_text("\n".join(['name = "new"', "[space]", *lines]) + "\n")
    found = CliRunner().invoke(cli.app, ["find", "study.toml", ".", "--write", "--json"])
    assert found.exit_code == 0, found.output
    entries = {e["name"]: e for e in json.loads(found.stdout)["found"] if e["rows"]}
    assert set(entries) == set(expected)
    assert {(e["kind"], e["objective"], e["used"]) for e in entries.values()} == {("mlflow", "loss", 10)}
    (copy,) = (e for e in entries.values() if not e["usable"])
    assert "the same runs as" in copy["why_not"], "the two have the same rows"
    history = load(tmp_path / "study.toml").history()
    assert history is not None
    ((name, values),) = ((t.name, (-t.y).tolist()) for t in history.tasks)
    assert (values, name != copy["name"]) == (expected[name], True)
    (tmp_path / "study.toml").unlink()
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, str]:
    files = (f for f in folder.rglob("*") if f.is_file())
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def test_pages_experiments_tasks_and_targets(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(store)
    monkeypatch.setattr("jumbo_bo.data.trackers.mlflow.PAGE", 3)
    check(from_mlflow(store, SPACE, objective="loss"), expected)
    some = from_mlflow(store, SPACE, objective="loss", experiments=["mnist"], direction="maximize")
    assert [(t.name, t.y.tolist()) for t in some.tasks] == [("mnist", expected["mnist"])]
    tagged = from_mlflow(store, SPACE, objective="loss", experiments=["mnist"], task="tags.dataset", target="mnist-1")
    assert tagged.target is not None
    assert (-tagged.target.y).tolist() == expected["mnist"][1::2]
    assert [(t.name, (-t.y).tolist()) for t in tagged.tasks] == [("mnist-0", expected["mnist"][2::2])]
    assert "(no task)" in tagged.summary()
    space = Space({"lr": SPACE.distributions["lr"]})
    by_param = from_mlflow(store, space, objective="loss", experiments=["mnist"], task="params.norm")
    assert {t.name: (-t.y).tolist() for t in by_param.tasks} == {
        "True": expected["mnist"][::2],
        "False": expected["mnist"][1::2],
    }


def test_mistakes_are_named(store: str) -> None:
    fill(store)
    with pytest.raises(ValueError, match=r"has no experiment 'mnst'; did you mean 'mnist'\?; it has .*'svhn'"):
        from_mlflow(store, SPACE, objective="loss", experiments=["mnst"])
    with pytest.raises(ValueError, match=r"no run has the metric 'los'; did you mean 'loss'.*\['accuracy', 'loss'\]"):
        from_mlflow(store, SPACE, objective="los")
    with pytest.raises(ValueError, match=r"no run has 'tags.datset'; did you mean 'tags.dataset'"):
        from_mlflow(store, SPACE, objective="loss", task="tags.datset")
    narrow = Space({"lr": FloatDistribution(1e-5, 0.1, log=True)})
    with pytest.raises(ValueError, match=r"'mnist' run 'run0' [0-9a-f]{32}: 'lr' is '1.0', expected a number in"):
        from_mlflow(store, narrow, objective="loss", experiments=["mnist"], on_bad_rows="error")
    with pytest.raises(ValueError, match=r"no runs; to start without old runs"):
        from_mlflow(store, SPACE, objective="loss", experiments=["Default"])


def test_an_older_store_is_refused_rather_than_upgraded(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/mlflow.db"
    fill(store)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db:
        db.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")  # the first there was
        db.commit()
    before = contents(tmp_path)
    with pytest.raises(
        ValueError, match=r"cannot be read as an MLflow tracking store: .*out-of-date.*mlflow db upgrade"
    ):
        from_mlflow(store, SPACE, objective="loss")
    assert contents(tmp_path) == before


def test_a_server(tmp_path: Path) -> None:
    pytest.importorskip("flask", reason="needs the PyPI package mlflow; mlflow-skinny has no server")
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, start_new_session=True)
    try:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                urlopen(f"{uri}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        expected = fill(uri)
        check(from_mlflow(uri, SPACE, objective="loss"), expected)
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # it and its workers; a polite end takes it half a minute
        server.wait(300)
    _wait_until_closed(port)
    with pytest.raises(ValueError, match=rf"http://127.0.0.1:{port} cannot be reached .*refused"):  # at once
        from_mlflow(uri, SPACE, objective="loss")


def test_a_server_that_resets_connections_is_no_answer() -> None:
    """As one that is killed while it is asked."""
    with (
        resetting() as address,
        pytest.raises(ValueError, match=rf"{address} cannot be reached .*(reset|closed connection).*start the server"),
    ):
        from_mlflow(address, SPACE, objective="loss")


def _wait_until_closed(port: int) -> None:
    """A killed worker may hold the port for a moment longer than the server that started it."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return
        except OSError:  # reset while it ends
            pass
        time.sleep(0.1)
    raise AssertionError(f"port {port} still accepts connections")
