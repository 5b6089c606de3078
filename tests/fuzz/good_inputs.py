"""Good inputs of every kind, and those that are whole but have odd values in them."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from mutations import atom, damaged, value
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.warp import Warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

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
CONDITIONAL = b"""
name = "boosters"
[space]
booster = { type = "categorical", choices = ["gbtree", "gblinear", "dart"] }
max_depth = { type = "int", low = 1, high = 8, when = "booster in ['gbtree', 'dart']" }
"T (C)" = { type = "float", low = 20, high = 90, step = 0.5, when = "booster != 'gblinear' and max_depth >= 2" }
share = { type = "float", low = 1e-3, high = 1.0, log = true }
[limits]
latency_ms = { max = 20 }
purity = { min = 95, max = 100 }
[objective]
command = ["python", "train.py"]
value = "loss"
"""
CONSTRAINED = b"""
name = "recipe"
constraints = ["a + b == 1", "not (catalyst == 'Pt' and `T (C)` > 50)"]
candidates = "stock.csv"
[space]
a = { type = "float", low = 0.0, high = 1.0, step = 0.05, about = 0.3, within = 0.2 }
b = { type = "float", low = 0.0, high = 1.0, step = 0.05 }
"T (C)" = { type = "float", low = 20, high = 90, about = 60 }
catalyst = { type = "categorical", choices = ["Pd", "Pt"], about = "Pd", odds = 4 }
"""
STOCK = b"a,b,T (C),catalyst\n0.5,0.5,20,Pd\n0.25,0.75,30.5,Pt\n0.3,0.7,80,Pd\n"
FORMULAS = (
    b"0 < a + 2 * b - c / 4 <= 1.5",
    b"a + b + c == 1 or kind in ['x', '-rf', 3]",
    b"not (kind == 'x' and (a >= 0.5 or `T (C)` != 20))",
    b"on and -a * b < `T (C)`",
)
TELL = b"""{"trial": 3, "value": 0.71}
{"trial": 4, "failed": true}
{"params": {"lr": 0.01, "units": 64, "opt": "sgd"}, "value": 0.8}
"""
YAML = b"wandb_version: 1\nlr:\n    value: 0.001\nopt:\n    value: adam\nunits: {value: 64}\n"
CONFIG = {"lr": 0.001, "units": 64, "opt": "adam"}
RUN = {"name": "a", "state": "finished", "config": CONFIG, "summary": {"value": 0.5}}


def written(file: Path, data: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def json_lines(rows: Iterable[Any]) -> bytes:
    """JSON lines of any values; a number beyond what int() can spell is written in hexadecimal, which is no JSON."""

    def text(row: Any) -> str:
        try:
            return json.dumps(row)
        except ValueError:
            return hex(10**5000)

    return "".join(f"{text(row)}\n" for row in rows).encode()


def odd_row(rng: random.Random) -> dict[str, Any]:
    return {**rng.choice(ROWS), rng.choice(("lr", "units", "opt", "value", "other")): value(rng)}


def odd_number(rng: random.Random) -> Any:
    found = atom(rng)
    while isinstance(found, str | bool | None) or (isinstance(found, int) and abs(found) > 10**4000):
        found = atom(rng)
    return found


@cache
def parquet_file(compression: Any) -> bytes:
    out = BytesIO()
    pl.DataFrame(ROWS).write_parquet(out, compression=compression)
    return out.getvalue()


@cache
def optimizer() -> Optimizer:
    return Optimizer(SPACE, method="gp-ucb")


@cache
def net_file() -> bytes:
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
    with TemporaryDirectory() as folder:
        made.save(Path(folder) / "net.safetensors")
        return (Path(folder) / "net.safetensors").read_bytes()


def altered_net(rng: random.Random, good: bytes) -> bytes:
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


def wandb_folder(folder: Path, config: bytes, summary: bytes) -> Path:
    files = folder / "wandb" / "run-20250131_120000-1a2b3c4d" / "files"
    written(files / "config.yaml", config)
    written(files / "wandb-summary.json", summary)
    return folder / "wandb"


def wandb_log(rng: random.Random, folder: Path) -> Path:
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
    return written(folder / "logs" / "run-1" / "run-1.wandb", damaged(rng, log) if rng.random() < 0.5 else log).parents[
        1
    ]
