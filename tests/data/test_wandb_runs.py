"""Exports and local folders of W&B, in the shapes that it was seen to write."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from tracked import DOTTED, reasons, values, write_rows

from jumbo_bo.data.trackers import from_wandb


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


def test_configurations_of_failed_runs_are_kept_and_those_of_lost_ones_are_not(tmp_path):
    states = {"finished": 1e-3, "failed": 5e-2, "crashed": 1e-2, "killed": 2e-2}
    rows = [*(row(1.0 + lr, lr=lr, state=state) for state, lr in states.items()), row(2.0)]
    rows += [row(None, lr=7.0, state="failed"), {"config": {}, "summary": {}, "state": "failed"}]  # no points of it
    (task,) = from_wandb(write_rows(tmp_path / "runs.json", rows), DOTTED, objective="loss").tasks
    assert [DOTTED.decode(u) for u in task.failed] == [{"lr": 5e-2, "opt.name": "adam"}]
    assert len(task.y) == 2


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
        "offline run: reading its log needs the wandb package (pip install wandb)": 1,
        "run has no metric 'loss.min'": 1,
        "run has neither config.yaml nor a .wandb file": 1,
    }


def test_wandb_runs_without_any_result_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", None)
    offline = local_run(tmp_path / "wandb", "offline-run-20250131_120400-eeeeeeee", None)
    (offline / "run-eeeeeeee.wandb").write_bytes(b":W&B\xe1\xbe\x00")
    with pytest.raises(ValueError, match=r"none of 1 runs can be used: 1 x offline run: .*pip install wandb\)$"):
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
        ("runs.txt", "x", "runs.txt has an unknown file type; expected a wandb folder or one of .csv, .json"),
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
        ("runs.csv", "config,summary,name\n{'lr': 0.1},{},a\n", "has Python dictionaries.*json.dump"),
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
