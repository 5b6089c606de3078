"""Runs of trackers: the folders and files they write, in the shapes the real tools were seen to write.

And how the tasks that were read relate.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History
from jumbo_bo.data.trackers import from_mlflow, from_ray, from_wandb
from jumbo_bo.errors import UserError
from jumbo_bo.space.space import Space

SPACE = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "opt/name": CategoricalDistribution(["adam", "sgd"])})
DOTTED = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "opt.name": CategoricalDistribution(["adam", "sgd"])})


def values(history: History) -> dict[str, list[float]]:
    """What the user's runs returned, by task."""
    tasks = (*history.tasks, *([history.target] if history.target else []))
    return {t.name: (history.sign(t.name) * t.y).tolist() for t in tasks}


def reasons(history: History) -> dict[str, dict[str, int]]:
    dropped = [(task, d) for r in history.reports for task, drops in r.dropped.items() for d in drops]
    out: dict[str, dict[str, int]] = {}
    for task, d in dropped:
        out.setdefault(task, {})[d.reason] = d.count
    return out


# Ray Tune


def trial(
    experiment: Path, name: str, losses: list[float], *, error: bool = False, csv: bool = False, **config: Any
) -> Path:
    folder = experiment / f"train_{name}"
    folder.mkdir(parents=True)
    (folder / "params.json").write_text(json.dumps(config, indent=2))
    (folder / "params.pkl").write_bytes(b"never to be opened")
    if csv:
        (folder / "progress.csv").write_text("loss,done,nest/acc\n" + "".join(f"{y},False,1\n" for y in losses))
        (folder / "result.json").touch()
    else:
        lines = [json.dumps({"loss": y, "nest": {"acc": -y}, "done": False, "config": config}) for y in losses]
        (folder / "result.json").write_text("".join(f"{line}\n" for line in lines))
    if error:
        (folder / "error.txt").write_text("Failure # 1\n")
    return folder


def state(experiment: Path, when: str, **status: str) -> None:
    """Status by trial, as Tune keeps it: JSON in JSON, with pickles as hexadecimal text."""
    storage = {"_type": "CLOUDPICKLE_FALLBACK", "value": "8005"}
    trials = [
        [json.dumps({"relative_logdir": f"train_{name}", "status": s, "storage": storage}), "{}"]
        for name, s in status.items()
    ]
    (experiment / f"experiment_state-{when}.json").write_text(json.dumps({"trial_data": trials, "stats": {}}))


ADAM, SGD = {"opt": {"name": "adam", "beta": 0.9}}, {"opt": {"name": "sgd", "beta": 0.9}}


def test_ray_takes_the_last_or_the_best_report(tmp_path):
    trial(tmp_path / "mnist", "0", [3.0, 1.0, 2.0], lr=1e-3, **ADAM)
    trial(tmp_path / "mnist", "1", [4.0, float("nan"), 5.0], lr=1e-2, **SGD)
    last = from_ray(tmp_path / "mnist", SPACE, objective="loss")
    assert values(last) == {"mnist": [2.0, 5.0]}
    assert values(from_ray(tmp_path / "mnist", SPACE, objective="loss", which="best")) == {"mnist": [1.0, 4.0]}
    accuracy = from_ray(tmp_path / "mnist", SPACE, objective="nest/acc", which="best", direction="maximize")
    assert values(accuracy) == {"mnist": [-1.0, -4.0]}
    assert [SPACE.decode(u) for u in last.tasks[0].u] == [
        {"lr": 1e-3, "opt/name": "adam"},
        {"lr": 1e-2, "opt/name": "sgd"},
    ]


def test_ray_each_experiment_is_a_task(tmp_path, monkeypatch):
    for i, name in enumerate(("mnist", "svhn")):
        trial(tmp_path / "results" / name, "0", [1.0 + i], lr=1e-3, **ADAM)
        trial(tmp_path / "results" / name, "1", [2.0 + i], lr=1e-2, **ADAM)
    (tmp_path / "results" / "notes").mkdir()
    expected = {"mnist": [1.0, 2.0], "svhn": [2.0, 3.0]}
    results = tmp_path / "results"
    for path in (results, results / "[ms]*", [results / "svhn", str(results / "mnist")]):
        assert values(from_ray(path, SPACE, objective="loss")) == expected
    monkeypatch.chdir(results / "mnist")
    assert values(from_ray(".", SPACE, objective="loss", target="mnist")) == {"mnist": [1.0, 2.0]}


def test_ray_experiments_of_one_name_stay_apart(tmp_path):
    for root in ("monday", "friday"):
        trial(tmp_path / root / "train", "0", [1.0], lr=1e-3, **ADAM)
        trial(tmp_path / root / "train", "1", [2.0], lr=1e-3, **ADAM)
    h = from_ray([tmp_path / "monday", tmp_path / "friday"], SPACE, objective="loss")
    assert set(values(h)) == {str(tmp_path / "monday" / "train"), str(tmp_path / "friday" / "train")}


def test_ray_task_by_a_parameter(tmp_path):
    for i, data in enumerate(("a", "b", "a")):
        trial(tmp_path / "all", str(i), [float(i)], lr=1e-3, data={"set": data}, **ADAM)
    h = from_ray(tmp_path / "all", SPACE, objective="loss", task="data/set")
    assert values(h) == {"a": [0.0, 2.0], "b": [1.0]}
    assert "data/set" not in h.summary()  # used, so it is not among the ignored columns


def test_ray_the_state_file_knows_which_trials_count(tmp_path):
    exp = tmp_path / "exp"
    for i, name in enumerate(("retried", "failed", "running", "good")):
        trial(exp, name, [float(i)], error=name in ("retried", "failed"), lr=1e-3, **ADAM)
    trial(exp, "silent", [], lr=1e-3, **ADAM)
    by_error_file = from_ray(exp, SPACE, objective="loss")
    assert values(by_error_file) == {"exp": [3.0, 2.0]}  # without a state, an error file is a failure
    assert reasons(by_error_file) == {"exp": {"trial failed": 2, "trial reported no result": 1}}
    done = dict.fromkeys(("retried", "good", "silent"), "TERMINATED")
    state(exp, "2025-01-01", retried="ERROR", failed="ERROR", good="ERROR")
    state(exp, "2025-01-02", failed="ERROR", running="RUNNING", **done)
    h = from_ray(exp, SPACE, objective="loss")
    assert values(h) == {"exp": [3.0, 0.0]}
    counts = {"trial failed": 1, "trial is not finished": 1, "trial reported no result": 1}
    assert reasons(h) == {"exp": counts}
    assert h.reports[0].read == {"exp": 5}
    (exp / "experiment_state-2025-01-03.json").write_text('{"trial_data": [["cut o')
    assert reasons(from_ray(exp, SPACE, objective="loss")) == reasons(by_error_file)


def test_ray_progress_table_and_cut_off_lines(tmp_path):
    trial(tmp_path / "exp", "0", [3.0, 1.5], csv=True, lr=1e-3, **ADAM)
    cut = trial(tmp_path / "exp", "1", [4.0, 2.5], lr=1e-2, **ADAM)
    with (cut / "result.json").open("a") as file:
        file.write('{"loss": 0.0, "do')
    (cut / "params.json").unlink()  # the reports carry the configuration, too
    assert values(from_ray(tmp_path / "exp", SPACE, objective="loss")) == {"exp": [1.5, 2.5]}
    assert values(from_ray(tmp_path / "exp", SPACE, objective="loss", which="best")) == {"exp": [1.5, 2.5]}


def test_ray_lists_find_the_tuple_they_were(tmp_path):
    with pytest.warns(UserWarning, match="persistent storage"):
        space = Space({"sizes": CategoricalDistribution([(32, 32), (64,)])})
    for i, sizes in enumerate(([32, 32], [64])):
        trial(tmp_path / "exp", str(i), [float(i)], sizes=sizes)
    h = from_ray(tmp_path / "exp", space, objective="loss")
    assert [space.decode(u)["sizes"] for u in h.tasks[0].u] == [(32, 32), (64,)]


def test_ray_errors_name_what_was_found(tmp_path, monkeypatch):
    exp = tmp_path / "exp"
    one = trial(exp, "0", [1.0], lr=1e-3, **ADAM)
    trial(exp, "1", [2.0], lr=5.0, **ADAM)
    monkeypatch.chdir(tmp_path)
    for path, options, message in [
        ("gone", {}, "gone does not exist; the folder looked from was"),
        ("g*", {}, r"nothing matches 'g\*'"),
        (one / "params.json", {}, "is a file; pass the folder of a Tune experiment"),
        (one, {}, "is a single trial; pass the folder of its experiment, .*exp$"),
        (exp, {"which": "mean"}, 'which is \'mean\', expected "last" or "best"'),
        (exp, {"objective": "los"}, "no run has the metric 'los'; did you mean 'loss'"),
        (exp, {"task": "data"}, "no run has 'data'.*pass task= one of .*'experiment'"),
        (exp, {"task": "lr"}, "task='lr' is also a parameter of the space"),
        (exp, {"target": "ex"}, "target='ex' is none of the tasks .*did you mean 'exp'"),
        (exp, {"rename": {"rate": "eta"}}, "no run has such a parameter; they have .*'lr'"),
        (exp, {"rename": {"opt/beta": "lr"}}, "trial train_0: rename maps 'opt/beta' to 'lr', but it has both"),
        (exp, {"fill": {"opt/nam": 1}}, "fill has 'opt/nam'; did you mean 'opt/name'"),
        (exp, {"on_bad_rows": "error"}, "exp 'exp' trial train_1: 'lr' is 5.0, expected a number in"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            from_ray(path, SPACE, **{"objective": "loss", **options})
    with pytest.raises(TypeError, match="unknown option 'mode'"):
        from_ray(exp, SPACE, objective="loss", mode="min")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty has no Tune trials; expected folders with params.json"):
        from_ray("empty", SPACE, objective="loss")
    (one / "result.json").write_text("{]\n")
    with pytest.raises(ValueError, match=r"train_0.result.json line 1: not JSON .*; correct or delete it"):
        from_ray(exp, SPACE, objective="loss")
    (one / "params.json").write_text("[1]")
    (one / "result.json").write_text('{"loss": 1}\n')
    with pytest.raises(ValueError, match=r"params.json: expected an object like .*got \[1\]"):
        from_ray(exp, SPACE, objective="loss")


# W&B


def row(loss: Any, lr: Any = 1e-3, name: str = "adam", **rest: Any) -> dict[str, Any]:
    return {
        "config": {"lr": lr, "opt": {"name": name}, "_wandb": {"v": 1}},
        "summary": {"loss": loss, "_step": 9},
        **rest,
    }


ROWS = [
    row(1.0, name="adam", group="a", state="finished"),
    row(2.0, lr=1e-2, group="b", state="finished"),
    row(3.0, lr=1e-2, group="a", state="crashed"),
    row(4.0, lr=1e-2, name="sgd", group="a"),
    row(5.0, lr=1e-2, group="b", state="running"),
    {"config": {"lr": 1e-4}, "summary": {}, "group": "b", "state": "finished", "name": "no-result"},
    {**row(6.0), "state": "finished"},
]


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    as_lines = file.suffix != ".json"
    file.write_text("".join(f"{json.dumps(r)}\n\n" for r in rows) if as_lines else json.dumps(rows))
    return file


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".ndjson"])
def test_wandb_json_by_group(tmp_path, suffix):
    h = from_wandb(write_rows(tmp_path / f"runs{suffix}", ROWS), DOTTED, objective="loss", task="group")
    assert values(h) == {"a": [1.0, 4.0], "b": [2.0]}
    assert reasons(h) == {
        "a": {"run crashed": 1},
        "b": {"run is running": 1, "run has no metric 'loss'": 1},
        "(no task)": {"run has no 'group'": 1},
    }
    assert "(no-result)" in h.summary()
    assert not [c for r in h.reports for c in r.extra]  # neither '_wandb' nor '_step'
    assert [DOTTED.decode(u) for u in h.tasks[0].u] == [
        {"lr": 1e-3, "opt.name": "adam"},
        {"lr": 1e-2, "opt.name": "sgd"},
    ]


def test_wandb_each_project_is_a_task(tmp_path):
    known = [row(float(i), project=f"p{i % 2}") for i in range(4)]
    assert values(from_wandb(write_rows(tmp_path / "1.json", known), DOTTED, objective="loss")) == {
        "p0": [0.0, 2.0],
        "p1": [1.0, 3.0],
    }
    write_rows(tmp_path / "mnist.jsonl", [row(1.0), row(2.0)])
    write_rows(tmp_path / "svhn.json", [row(3.0), row(4.0)])
    h = from_wandb([tmp_path / "*.jsonl", tmp_path / "svhn.json"], DOTTED, objective="loss", target="svhn")
    assert values(h) == {"mnist": [1.0, 2.0], "svhn": [3.0, 4.0]}
    assert h.target is not None


def test_wandb_table_of_the_browser(tmp_path):
    file = tmp_path / "export.csv"
    file.write_text(
        '"Name","State","Notes","Tags","Created","lr","opt.name","data","loss","val.acc"\n'
        '"brave-sun-1","finished","-","","2025-01-31T12:00:00.000Z","0.001","adam","a","0.5","0.9"\n'
        '"cool-sky-2","finished","-","","2025-01-31T12:01:00.000Z","0.01","sgd","a","0.25","0.8"\n'
        '"dim-sea-3","failed","-","","2025-01-31T12:02:00.000Z","0.02","adam","a","9","0.1"\n'
        '"early-fog-4","finished","-","","2025-01-31T12:03:00.000Z","auto","sgd","a","0.3","0.7"\n'
        '"faint-elm-5","finished","-","","2025-01-31T12:04:00.000Z","0.01","","b","0.75","0.6"\n'
        '"glad-oak-6","finished","-","","2025-01-31T12:05:00.000Z","0.02","","b","0.5","0.7"\n'
        '"happy-bay-7","finished","-","","2025-01-31T12:06:00.000Z","0.02","","b","",""\n'
    )
    h = from_wandb(file, DOTTED, objective="loss", task="data")
    assert values(h) == {"a": [0.5, 0.25], "b": [0.75, 0.5]}
    assert reasons(h) == {"a": {"run failed": 1, "lr is not a number": 1}, "b": {"run has no metric 'loss'": 1}}
    text = " ".join(h.summary().split())
    assert "row 5 (early-fog-4): 'lr' is 'auto'" in text
    assert "opt.name: filled with random values" in text  # b never had it
    both = from_wandb(file, DOTTED, objective="val.acc", direction="maximize", fill={"opt.name": "sgd"})
    assert values(both) == {"export": [0.9, 0.8, 0.6, 0.7]}
    assert [DOTTED.decode(u)["opt.name"] for u in both.tasks[0].u] == ["adam", "sgd", "sgd", "sgd"]


def local_run(folder: Path, name: str, config: str | None, summary: Any = None) -> Path:
    files = folder / name / "files"
    files.mkdir(parents=True)
    if config is not None:
        (files / "config.yaml").write_text(config)
    if summary is not None:
        (files / "wandb-summary.json").write_text(json.dumps(summary))
    return folder / name


YAML = "_wandb:\n    value:\n        cli_version: 0.31.0\nlr:\n    value: {}\nopt:\n    value:\n        name: adam\n"


def test_wandb_local_folder(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", None)  # not needed for synced runs
    folder = tmp_path / "mnist" / "wandb"
    local_run(
        folder, "run-20250131_120000-aaaaaaaa", YAML.format("0.001"), {"loss": {"min": 0.5}, "_wandb": {"runtime": 1}}
    )
    local_run(
        folder, "run-20250131_120100-bbbbbbbb", "wandb_version: 1\n" + YAML.format("1e-02"), {"loss": {"min": 0.25}}
    )
    local_run(folder, "run-20250131_120200-cccccccc", YAML.format("0.001"))
    local_run(folder, "run-20250131_120300-dddddddd", None)
    offline = local_run(folder, "offline-run-20250131_120400-eeeeeeee", None)
    (offline / "run-eeeeeeee.wandb").write_bytes(b":W&B\xe1\xbe\x00")
    (folder / "latest-run").symlink_to(folder / "run-20250131_120000-aaaaaaaa")
    for path in (folder, folder.parent):
        h = from_wandb(path, DOTTED, objective="loss.min")
        assert values(h) == {"mnist": [0.5, 0.25]}
    assert reasons(h)["mnist"] == {
        "run was made offline, its log can only be read with the package wandb (pip install wandb)": 1,
        "run has no metric 'loss.min'": 1,
        "run has neither config.yaml nor a .wandb file": 1,
    }


def test_wandb_runs_without_any_result_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", None)
    offline = local_run(tmp_path / "wandb", "offline-run-20250131_120400-eeeeeeee", None)
    (offline / "run-eeeeeeee.wandb").write_bytes(b":W&B\xe1\xbe\x00")
    with pytest.raises(ValueError, match=r"none of 1 runs can be used: 1 x run was made offline.*pip install wandb\)$"):
        from_wandb(tmp_path / "wandb", DOTTED, objective="loss")


def test_wandb_log_records_cross_blocks(tmp_path):
    from jumbo_bo.data.trackers.wandb import BLOCK, _records

    def piece(kind: int, data: bytes) -> bytes:
        return struct.pack("<IHB", 0, len(data), kind) + data

    log, wanted = (
        b":W&B\xe1\xbe\x00",
        [b"a" * 100, b"b" * 50_000, b"c" * (BLOCK * 2 - 50_000 - 100 - 3 * 7 - 2 * 7 - 3), b"d"],
    )
    for record in wanted:  # as a LevelDB log is written
        first, rest = True, record
        while first or rest:
            left = BLOCK - len(log) % BLOCK
            if left < 7:
                log += bytes(left)
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            log += piece(
                {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, not rest], part
            )
            first = False
    file = tmp_path / "run-1.wandb"
    file.write_bytes(log)
    assert list(_records(file)) == wanted
    file.write_bytes(log[:-1])
    assert list(_records(file)) == wanted[:-1]  # cut off
    file.write_bytes(b"SQLite")
    with pytest.raises(ValueError, match=r"run-1.wandb is not a W&B log"):
        list(_records(file))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs.txt", "x", "runs.txt is of an unknown kind; expected a wandb folder or one of .csv, .json"),
        ("runs.json", "[", "runs.json: not JSON"),
        ("runs.json", '{"config": {"0": {}}}', r"runs.json: expected a list of runs .*to_json\(orient='records'\)"),
        ("runs.json", "[1]", "runs.json run 0: expected an object"),
        (
            "runs.json",
            '[{"config": "{}", "summary": {}}]',
            r"runs.json run 0 'config': expected an object like .* got '\{\}'",
        ),
        ("runs.json", "[]", "runs.json: no runs; to start without old runs use History.empty"),
        ("runs.jsonl", '{"config": {}}\n{"conf', "runs.jsonl line 2: not JSON"),
        ("runs.csv", "config,summary,name\n{'lr': 0.1},{},a\n", "holds Python dictionaries.*json.dump"),
        ("runs.csv", "lr,loss\n0.1,1,7\n", "runs.csv cannot be read as CSV"),
        (
            "runs.csv",
            "eta,loss\n0.1,1\n",
            r"1 x run has none of the parameters 'lr', 'opt.name'; their .*\['eta', 'loss'\].*rename=",
        ),
        ("folder", None, "folder has no W&B runs; expected folders like run-"),
    ],
)
def test_wandb_errors_name_what_was_found(tmp_path, name, content, message):
    file = tmp_path / name
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    with pytest.raises(ValueError, match=message):
        from_wandb(file, DOTTED, objective="loss")


def test_wandb_broken_yaml_names_the_file(tmp_path):
    local_run(tmp_path, "run-20250131_120000-aaaaaaaa", "lr: [", {})
    with pytest.raises(ValueError, match=r"aaaaaaaa/files/config.yaml: not YAML"):
        from_wandb(tmp_path, DOTTED, objective="loss")


# What all share


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
        ("sqlite:///optuna.db", r"optuna.db is no MLflow tracking store; it has the tables \['studies'\]"),
        ("sqlite:///text.db", "text.db cannot be read as an MLflow tracking store: file is not a database"),
        ("mlruns", "mlruns does not exist; the folder looked from was"),
        ("project", "project holds no MLflow experiments; pass the folder that does, usually called mlruns"),
        ((tmp_path / "project").as_uri(), "project holds no MLflow experiments"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            from_mlflow(uri, SPACE, objective="loss")
    with pytest.raises(UserError, match=r"mlflow:\*\*\*@db/mlflow: opening a database directly may change its tables"):
        from_mlflow("postgresql://mlflow:secret@db/mlflow", SPACE, objective="loss")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["optuna.db", "project", "text.db"]


# Correlations between tasks
