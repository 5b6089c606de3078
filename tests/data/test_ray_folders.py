"""Folders of Ray Tune, in the shapes that it was seen to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution
from tracked import SPACE, reasons, values

from jumbo_bo.data.trackers import from_ray
from jumbo_bo.space.space import Space


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
        ("gone", {}, "gone does not exist; looked from "),
        ("g*", {}, r"nothing matches 'g\*'"),
        (one / "params.json", {}, "is a file; pass the folder of a Tune experiment"),
        (one, {}, "is a single trial; pass the folder of its experiment, .*exp$"),
        (exp, {"which": "mean"}, 'which is \'mean\', expected "last" or "best"'),
        (exp, {"objective": "los"}, "no run has the metric 'los'; did you mean 'loss'"),
        (exp, {"task": "data"}, "no run has 'data'.*pass task= one of .*'experiment'"),
        (exp, {"task": "lr"}, "task='lr' is also a parameter of the space"),
        (exp, {"target": "ex"}, "target='ex' is not one of the tasks .*did you mean 'exp'"),
        (exp, {"rename": {"rate": "eta"}}, "no run has such a parameter; they have .*'lr'"),
        (exp, {"rename": {"opt/beta": "lr"}}, "trial train_0: rename maps 'opt/beta' to 'lr', but it has both"),
        (exp, {"fill": {"opt/nam": 1}}, "fill names 'opt/nam'; did you mean 'opt/name'"),
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
