"""What is attacked: each target makes one input from a generator and hands it to the code that reads such inputs.

It returns when the input was read, and raises what the reader raised.
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from mutations import atom, damaged, value
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.cli.template import study_text
from jumbo_bo.data.readers import read_history
from jumbo_bo.data.storage import checked, shown
from jumbo_bo.data.trackers import from_ray, from_wandb
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.runner.people import number_of, parse
from jumbo_bo.space.space import Space
from jumbo_bo.study.guess import guess, read_table
from jumbo_bo.study.job import render
from jumbo_bo.study.study_file import load

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "units": IntDistribution(8, 512, step=8),
        "opt": CategoricalDistribution(["adam", "sgd"]),
    }
)
SECRET = "hunter2"
ROWS = [{"lr": 10**-i, "units": 8 * i, "opt": "adam", "task": f"t{i % 2}", "value": 0.5 * i} for i in range(1, 6)]
CSV = pl.DataFrame(ROWS).write_csv().encode()
JSONL = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
STUDY = b"""
name = "widgets"
storage = "sqlite:///study.db"
direction = "maximize"
trials = 30
seed = 1
bounds = [0, 100]
method = "gp-ucb"
[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true }
units = { type = "int", low = 8, high = 512, step = 8 }
rate = { type = "float", low = 0.0, high = 1.0, step = 0.25 }
opt = { type = "categorical", choices = ["adam", "-rf", 3] }
[objective]
command = ["python", "train.py"]
workers = 2
timeout = 60
[stop]
gain = 0.01
chance = 0.05
[[history]]
files = "runs/*.csv"
task = "dataset"
objective = "accuracy"
rename = { learning_rate = "lr" }
fill = { opt = "adam" }
[[history]]
optuna = "sqlite:///old.db"
"""
TELL = b'{"trial": 3, "value": 0.71}\n{"trial": 4, "failed": true}\n{"params": {"lr": 0.01, "units": 64}, "value": 0.8}'
YAML = b"wandb_version: 1\nlr:\n    value: 0.001\nopt:\n    value: adam\nunits: {value: 64}\n"
CONFIG = {"lr": 0.001, "units": 64, "opt": "adam"}
RUN = {"name": "a", "state": "finished", "config": CONFIG, "summary": {"value": 0.5}}


def csv(rng: random.Random, folder: Path) -> None:
    file = folder / rng.choice(("runs.csv", "runs.tsv"))
    file.write_bytes(damaged(rng, CSV))
    read_history(file, SPACE, task=rng.choice((None, "task")), on_bad_rows=rng.choice(("skip", "error")))


def init(rng: random.Random, folder: Path) -> None:
    """`jumbo init`: what it writes, it can read."""
    file = folder / "runs.csv"
    file.write_bytes(damaged(rng, CSV))
    found = guess(read_table(file))
    text = study_text("study", found.space, found.direction, ["runs.csv"], found.columns, found.notes)
    study = folder / "study.toml"
    study.write_text(text, encoding="utf-8")
    load(study).history()


def jsonl(rng: random.Random, folder: Path) -> None:
    file = folder / "runs.jsonl"
    file.write_bytes(damaged(rng, JSONL) if rng.random() < 0.7 else _lines(_odd_row(rng) for _ in range(4)))
    read_history(file, SPACE)


def parquet(rng: random.Random, folder: Path) -> None:
    file = folder / "runs.parquet"
    file.write_bytes(damaged(rng, _parquet(rng.choice(("uncompressed", "zstd", "snappy")))))
    read_history(file, SPACE)


def study(rng: random.Random, folder: Path) -> None:
    file = folder / "study.toml"
    file.write_bytes(damaged(rng, STUDY))
    read = load(file)
    render(read.job, read.space.decode(read.space.sample(np.random.default_rng(0), 1)[0]))


def tell(rng: random.Random, folder: Path) -> None:
    data = damaged(rng, TELL) if rng.random() < 0.7 else _lines([{**value_of_keys(rng)}])
    for entry in parse(io.StringIO(data.decode(errors="replace"))):
        if entry.params is not None:
            SPACE.decode(SPACE.encode(entry.params))


def value_of_keys(rng: random.Random) -> dict[str, Any]:
    return {key: value(rng) for key in ("trial", "params", "value", "failed") if rng.random() < 0.5}


def values(rng: random.Random, folder: Path) -> None:
    """Configurations, results and ranges that a program may pass."""
    match rng.randrange(4):
        case 0:
            SPACE.encode({"lr": value(rng), "units": value(rng), "opt": value(rng)})
        case 1:
            _optimizer().tell({"lr": 0.01, "units": 64, "opt": "sgd"}, _number(rng))
        case 2:
            number_of(atom(rng), rng.choice(("", "line 1: ")))
        case _:
            file = folder / "study.toml"
            low, high, step = (_number(rng) for _ in range(3))
            extra = rng.choice(("", f", step = {step!s}", ", log = true"))
            kind = rng.choice(("float", "int"))
            file.write_text(f'name = "s"\n[space]\nx = {{ type = "{kind}", low = {low}, high = {high}{extra} }}\n')
            space = load(file).space
            for u in (0.0, 0.3, 1.0):
                params = space.decode([u])
                assert space.decode(space.encode(params)) == params


def net(rng: random.Random, folder: Path) -> None:
    good = _net()
    length = struct.unpack("<Q", good[:8])[0]
    if rng.random() < 0.5:
        data = damaged(rng, good)
    else:  # the header alone, which stays as long as it says
        header = damaged(rng, good[8 : 8 + length])
        data = struct.pack("<Q", len(header)) + header + good[8 + length :]
    if rng.random() < 0.5:
        data = _altered(rng, good)
    file = folder / "net.safetensors"
    file.write_bytes(data)
    past = FeatureNet.load(file, SPACE)
    t = SPACE.transform(SPACE.sample(np.random.default_rng(1), 3))
    past.predictions(t)
    assert all(np.isfinite(block).all() for block in past.blocks(t).values())


def wandb(rng: random.Random, folder: Path) -> None:
    kinds: list[Callable[[], Path]] = [
        lambda: _write(folder / "runs.csv", damaged(rng, CSV)),
        lambda: _write(folder / "runs.json", damaged(rng, json.dumps([RUN, RUN]).encode())),
        lambda: _write(folder / "runs.jsonl", _lines([RUN, {key: value(rng) for key in RUN}])),
        lambda: _wandb_folder(folder, damaged(rng, YAML), b'{"value": 0.5}'),
        lambda: _wandb_folder(folder, YAML, damaged(rng, b'{"value": 0.5}')),
    ]
    if find_spec("wandb"):
        kinds.append(lambda: _wandb_log(rng, folder))
    from_wandb(rng.choice(kinds)(), SPACE)


def ray(rng: random.Random, folder: Path) -> None:
    trial = folder / "tune" / "trial_1"
    report = {"value": 0.5, "config": CONFIG, "epoch": 1}
    state = {"trial_data": [[json.dumps({"relative_logdir": "trial_1", "status": "TERMINATED"}), "x"]]}
    parts = {
        trial / "params.json": json.dumps(CONFIG).encode(),
        trial / "result.json": _lines([report, report]),
        trial / "progress.csv": b"value,epoch\n0.7,1\n0.5,2\n",
        trial.parent / "experiment_state-1.json": json.dumps(state).encode(),
    }
    if rng.random() < 0.5:
        del parts[trial / "result.json"]
    for file in rng.sample(sorted(parts), rng.choice((1, 1, 2))):
        parts[file] = damaged(rng, parts[file])
        if rng.random() < 0.2:
            parts[file] = _lines([value(rng)])
    for file in sorted(trial.glob("*")) + sorted(trial.parent.glob("*.json")):
        file.unlink()
    for file, data in parts.items():
        _write(file, data)
    from_ray(folder / "tune", SPACE, which=rng.choice(("last", "best")))


def address(rng: random.Random, folder: Path) -> None:
    """No secret of an address is shown, whatever else is wrong with it."""
    good = rng.choice(
        (
            f"postgresql+psycopg://me:{SECRET}@host:5432/db?connect_timeout=3",
            f"mysql://host/db?user=me&password={SECRET}",
            f"postgresql://host/db?sslpassword={SECRET}&user=me",
            f"http://me:{SECRET}@host:5000/",
        )
    )
    before, secret, after = good.partition(SECRET)
    text = damaged(rng, after.encode(), [b"?", b"//", b":", b" ", b"\x1b[1m", b"&&"]).decode(errors="replace")
    place = before + secret + text
    assert SECRET not in shown(place)
    checked(place)


TARGETS: dict[str, Callable[[random.Random, Path], None]] = {
    f.__name__: f for f in (csv, init, jsonl, parquet, study, tell, values, net, wandb, ray, address)
}


def _write(file: Path, data: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def _lines(rows: Any) -> bytes:
    """JSON lines of any values; a number beyond what int() can spell is written in hexadecimal, which is no JSON."""

    def text(row: Any) -> str:
        try:
            return json.dumps(row)
        except ValueError:
            return hex(10**5000)

    return "".join(f"{text(row)}\n" for row in rows).encode()


def _odd_row(rng: random.Random) -> dict[str, Any]:
    return {**rng.choice(ROWS), rng.choice(("lr", "units", "opt", "value", "other")): value(rng)}


def _number(rng: random.Random) -> Any:
    found = atom(rng)
    while isinstance(found, str | bool | None) or (isinstance(found, int) and abs(found) > 10**4000):
        found = atom(rng)
    return found


@cache
def _parquet(compression: Any) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(ROWS).write_parquet(out, compression=compression)
    return out.getvalue()


@cache
def _optimizer() -> Optimizer:
    return Optimizer(SPACE, method="gp-ucb")


@cache
def _net() -> bytes:
    rng, tasks = np.random.default_rng(5), 3
    widths = [len(SPACE.groups), 8, 4, tasks]
    layers = tuple((rng.standard_normal((i, o)), rng.standard_normal(o)) for i, o in pairwise(widths))
    made = FeatureNet.standardised(
        layers,
        SPACE.transform(SPACE.sample(rng, 50)),
        tasks=tuple(f"old {k}" for k in range(tasks)),
        warps=(Warp(0, 0.0, 1.0),) * tasks,
        space_fingerprint=SPACE.fingerprint,
    )
    file = io.BytesIO()
    path = Path("net.safetensors").absolute()
    made.save(path)
    file.write(path.read_bytes())
    return file.getvalue()


def _altered(rng: random.Random, good: bytes) -> bytes:
    """A file that is whole, with another value somewhere in the tree of its fields."""
    length = struct.unpack("<Q", good[:8])[0]
    header = json.loads(good[8 : 8 + length])
    tree = json.loads(header["__metadata__"]["jumbo_bo"])
    node: Any = tree if rng.random() < 0.1 else tree["fields"]
    while True:
        key = rng.choice(sorted(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        while True:
            node[key] = value(rng)
            try:
                text = json.dumps(tree)
                break
            except ValueError:  # a number that Python does not spell
                continue
        break
    header["__metadata__"]["jumbo_bo"] = text
    data = json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data + good[8 + length :]


def _wandb_folder(folder: Path, config: bytes, summary: bytes) -> Path:
    files = folder / "wandb" / "run-20250131_120000-1a2b3c4d" / "files"
    _write(files / "config.yaml", config)
    _write(files / "wandb-summary.json", summary)
    return folder / "wandb"


def _wandb_log(rng: random.Random, folder: Path) -> Path:
    from wandb.proto.wandb_internal_pb2 import Record

    record = Record()
    for name, setting in CONFIG.items():
        item = record.run.config.update.add()
        item.nested_key.extend(rng.choice(([name], [name, "deeper"], ["lr", "x"])))
        item.value_json = rng.choice((json.dumps(setting), "{", "[" * 3000, "1" * 5000))
    summary, end = Record(), Record()
    item = summary.summary.update.add()
    item.key, item.value_json = "value", "0.5"
    end.exit.exit_code = 0
    pieces = b""
    for data in (record.SerializeToString(), summary.SerializeToString(), end.SerializeToString()):
        data = damaged(rng, data) if rng.random() < 0.3 else data
        data = data[:30_000]
        pieces += struct.pack("<IHB", zlib.crc32(b"\x01" + data), len(data), 1) + data
    log = b":W&B\xe1\xbe\x00" + pieces
    return _write(folder / "logs" / "run-1" / "run-1.wandb", damaged(rng, log) if rng.random() < 0.5 else log).parents[
        1
    ]


# Reading warns of columns it has to guess; that is not what is looked for here.
warnings.simplefilter("ignore")
sys.setrecursionlimit(1000)
