"""Files that are damaged, odd or made to do harm: one line that names them, soon."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
import types
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tracked import DOTTED, SPACE, values

from jumbo_bo.data import files
from jumbo_bo.data.readers import read_history
from jumbo_bo.data.trackers import from_mlflow, from_ray, from_wandb
from jumbo_bo.errors import InputError, UserError
from resetting import resetting

DEEP = '{"a":' * 5000
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


def refused(read: Callable[[], Any], message: str, seconds: float = 10.0) -> None:
    start = time.process_time()
    with pytest.raises(UserError, match=message) as caught:
        read()
    assert time.process_time() - start < seconds
    assert len(str(caught.value)) < 2000
    assert "\n" not in str(caught.value)


# Tables


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (DEEP, "line 2: not JSON .more than 100 levels"),
        ('{"lr": ' + "1" * 5000 + ', "value": 1}', "line 2: not JSON .a whole number with more digits"),
        ('{"lr": "\\ud800", "value": 1}', "line 2: not JSON .half of a pair"),
        ("[1]", "line 2: expected an object"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text('{"lr": [0.01], "value": 1}\n' + line + "\n")
    refused(lambda: read_history(file, SPACE), message)


def test_rows_with_keys_of_their_own_take_no_minutes(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.jsonl", tmp_path / "outer.jsonl"
    rows = [{"lr": 1e-3 * (1 + i % 9), "value": i, "note": {f"k{i}": [1, "a", {}]}} for i in range(5000)]
    inner.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    outer.write_text("".join(f'{{"k{i}": 1}}\n' for i in range(20_000)))
    start = time.process_time()
    assert len(read_history(inner, SPACE).tasks[0].y) == 5000
    assert time.process_time() - start < 10  # 14 s by the square of their number, before
    refused(lambda: read_history(outer, SPACE), "more than 10,000 different keys")


def test_lines_end_where_json_says(tmp_path: Path) -> None:
    """U+2028 may stand in a string, and is no end of a line."""
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(f'{{"lr": 0.0{i}, "note": ["a\u2028b"], "value": {i}}}\n' for i in (1, 2, 3)))
    assert values(read_history(file, SPACE)) == {"runs": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize("later", [1.5, "auto", True, None])
def test_parts_of_a_file_agree_with_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Any) -> None:
    rows = [{"a": 1, "b": "x"}] * 10 + [{"a": later, "c": 2.5}] * 10
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    whole = files.scan(file).lazy().collect()
    monkeypatch.setattr(files, "LINES", 4)
    parts = files.scan(file).lazy().collect()
    assert whole.columns == parts.columns
    assert [[str(v) for v in column] for column in whole] == [[str(v) for v in column] for column in parts]


def test_a_panic_of_polars_is_an_error_like_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: Any, **__: Any) -> None:
        raise pl.exceptions.PanicException("range end index 7 out of range\nnote: run with a backtrace")

    file = tmp_path / "runs.parquet"
    pl.DataFrame({"lr": [0.01], "value": [1.0]}).write_parquet(file)
    monkeypatch.setattr("jumbo_bo.data.files.pl.scan_parquet", panic)
    refused(lambda: read_history(file, SPACE), "cannot be read as PARQUET: range end index 7 out of range$")


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet", "runs.jsonl"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    refused(lambda: read_history(tmp_path / name, SPACE), "is a pipe or a device")


# Ray


def trial(folder: Path, **parts: str) -> Path:
    inside = folder / "tune" / "trial_1"
    inside.mkdir(parents=True)
    for name, text in ({"params.json": '{"lr": 0.01, "opt/name": "sgd"}'} | parts).items():
        (inside / name.replace("_", ".")).write_text(text)
    return folder / "tune"


def test_a_long_cell_of_a_trial_is_read(tmp_path: Path) -> None:
    note = "x" * 300_000  # csv reads 131,072 characters unless it is told otherwise
    folder = trial(tmp_path, progress_csv=f"value,note\n0.5,{note}\n0.25,{note}\n")
    (folder / "trial_2").mkdir()
    (folder / "trial_2" / "params.json").write_text('{"lr": 0.02, "opt/name": "sgd"}')
    (folder / "trial_2" / "progress.csv").write_text("value\n0.75,more,than,the,header\n")
    assert sorted(values(from_ray(folder, SPACE))["tune"]) == [0.25, 0.75]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("result_json", DEEP + "\n", "result.json line 1: not JSON .more than 100 levels"),
        ("result_json", "1" * 5000 + "\n", "more digits than can be read"),
        ("params_json", DEEP, "params.json: not JSON"),
        ("params_json", "[1]", "params.json: expected an object"),
    ],
)
def test_a_damaged_trial_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    parts = {"result_json": '{"value": 0.5}\n', "params.json": "{}"} | {name: text}
    refused(lambda: from_ray(trial(tmp_path, **parts), SPACE), message)


@pytest.mark.parametrize("name", ["result.json", "params.json", "progress.csv"])
def test_a_pipe_in_a_trial_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = trial(tmp_path)
    (folder / "trial_1" / name).unlink(missing_ok=True)
    os.mkfifo(folder / "trial_1" / name)
    refused(lambda: from_ray(folder, SPACE), "is a pipe or a device")


def test_a_deep_state_of_an_experiment_is_no_state(tmp_path: Path) -> None:
    folder = trial(tmp_path, result_json='{"value": 0.5}\n')
    (folder / "experiment_state-1.json").write_text(DEEP)
    (folder / "trial_2").mkdir()
    (folder / "trial_2" / "result.json").write_text('{"value": 1, "config": {"lr": 0.02, "opt": {"name": "adam"}}}\n')
    assert values(from_ray(folder, SPACE)) == {"tune": [0.5, 1.0]}


# W&B


def local_run(folder: Path, config: str) -> Path:
    inside = folder / "wandb" / "run-20250131_120000-aaaaaaaa" / "files"
    inside.mkdir(parents=True)
    (inside / "config.yaml").write_text(config)
    (inside / "wandb-summary.json").write_text('{"loss": 0.5}')
    return folder / "wandb"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BOMB, r"config.yaml: not YAML \(its aliases stand for [0-9]e\+1[0-9] values"),
        ("a: &a [*a]\n", "its aliases stand for inf values"),
        ("a: &a {b: 1}\nc: {<<: *a, d: &d {<<: *d}}\n", "its aliases stand for inf values"),
        ("a: " + "[" * 5000, "not YAML .*recursion"),
        ("a: 2020-13-45\n", "not YAML .month must be"),
        ("a: !!int ''\n", "not YAML"),
        ("a: !!timestamp x\n", "not YAML"),
        ("a: " + "1" * 5000 + "\n", "not YAML .Exceeds the limit"),
    ],
)
def test_a_configuration_that_does_harm_is_named(tmp_path: Path, config: str, message: str) -> None:
    assert len(config) < 6000
    refused(lambda: from_wandb(local_run(tmp_path, config), DOTTED, objective="loss"), message)


def test_aliases_of_a_sane_size_are_read(tmp_path: Path) -> None:
    folder = local_run(tmp_path, "base: &b {name: sgd}\nopt: {value: *b}\nlr: {value: 0.01}\nbig: 0x" + "f" * 5000)
    other = folder / "run-20250131_120100-bbbbbbbb" / "files"
    other.mkdir(parents=True)
    (other / "config.yaml").write_text("lr: {value: 0.02}\nopt: {value: {name: adam}}\n")
    (other / "wandb-summary.json").write_text('{"loss": 0.25}')
    assert values(from_wandb(folder, DOTTED, objective="loss")) == {tmp_path.name: [0.5, 0.25]}


def test_a_damaged_log_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def item(key: str, value: str, *nested: str) -> Any:
        return types.SimpleNamespace(nested_key=nested, key=key, value_json=value)

    def record(data: bytes) -> Any:
        if data == b"broken":
            raise RuntimeError("Error parsing message")
        changes = {
            b"deep": [item("a", "[" * 5000)],
            b"cut": [item("a", "{")],
            b"clash": [item("a", "1"), item("", "2", "a", "b")],
        }[data]
        config = types.SimpleNamespace(update=changes)
        return types.SimpleNamespace(WhichOneof=lambda _: "config", config=config)

    fake = types.SimpleNamespace(Record=types.SimpleNamespace(FromString=record))
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", fake)
    run = tmp_path / "wandb" / "offline-run-20250131_120000-aaaaaaaa"
    run.mkdir(parents=True)
    for data in (b"broken", b"deep", b"cut", b"clash"):
        piece = struct.pack("<IHB", 0, len(data), 1) + data
        (run / "run-aaaaaaaa.wandb").write_bytes(b":W&B\xe1\xbe\x00" + piece)
        refused(lambda: from_wandb(tmp_path / "wandb", DOTTED, objective="loss"), "aaaaaaaa.wandb is a damaged W&B log")


def test_an_odd_state_or_name_of_a_run_is_no_trouble(tmp_path: Path) -> None:
    runs = [{"config": {"lr": 0.01, "opt": {"name": "sgd"}}, "summary": {"loss": i}} for i in (1, 2)]
    runs += [{**runs[0], "state": ["finished"]}, {**runs[0], "name": {"a": "x" * 5000}, "state": "x" * 5000}]
    file = tmp_path / "runs.json"
    file.write_text(json.dumps(runs))
    history = from_wandb(file, DOTTED, objective="loss")
    assert values(history) == {"runs": [1.0, 2.0]}
    assert sum(d.count for r in history.reports for drops in r.dropped.values() for d in drops) == 2
    assert len(history.summary()) < 2000


# MLflow


def test_a_server_that_is_not_there_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(MlflowClient=None))
    monkeypatch.setattr("jumbo_bo.data.trackers.mlflow.getproxies", dict)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: connections are refused
        port = taken.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(InputError, match=r"http://me:\*\*\*@127.0.0.1:\d+ cannot be reached .*start the server"):
            from_mlflow(f"http://me:hunter2@127.0.0.1:{port}", SPACE, objective="loss")
        assert time.monotonic() - start < 100
    for address in ("http://127.0.0.1:99999", "http://:80"):
        with pytest.raises(InputError, match="cannot be reached"):
            from_mlflow(address, SPACE, objective="loss")


def test_a_server_that_resets_connections_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        """Wraps what went wrong, as MLflow's does."""

        def __init__(self, tracking_uri: str) -> None:
            self.host = tracking_uri.removeprefix("http://")

        def search_experiments(self, **_: object) -> None:
            try:
                with closing(HTTPConnection(self.host)) as connection:
                    connection.request("GET", "/api/2.0/mlflow/experiments/search")
                    connection.getresponse()
            except ConnectionError as error:
                wrapped = ValueError("Connection aborted.", error)
            raise RuntimeError("API request failed") from wrapped

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(MlflowClient=Client))
    monkeypatch.setattr("jumbo_bo.data.trackers.mlflow.getproxies", dict)
    with resetting() as address:
        message = rf"^{address} cannot be reached .*(reset by peer|closed connection).*; check the address, or start"
        refused(lambda: from_mlflow(address, SPACE, objective="loss"), message)
