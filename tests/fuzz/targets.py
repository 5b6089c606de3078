"""What is attacked: each target makes one input from a generator and hands it to the code that reads such inputs.

It returns when the input was read, and raises what the reader raised.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from good_inputs import (
    CONDITIONAL,
    CONFIG,
    CONSTRAINED,
    CSV,
    FORMULAS,
    JSONL,
    RUN,
    SECRET,
    SPACE,
    STOCK,
    STUDY,
    TELL,
    YAML,
    altered_net,
    json_lines,
    net_file,
    odd_number,
    odd_row,
    optimizer,
    parquet_file,
    wandb_folder,
    wandb_log,
    written,
)
from mutations import atom, damaged, value
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.cli.template import study_text
from jumbo_bo.data.readers import read_history
from jumbo_bo.data.storage import checked, shown
from jumbo_bo.data.trackers import from_ray, from_wandb
from jumbo_bo.errors import UserError
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.runner.people import number_of, parse
from jumbo_bo.space.space import Space
from jumbo_bo.study import toml
from jumbo_bo.study.find.entries import append, entries
from jumbo_bo.study.find.judge import Wanted
from jumbo_bo.study.find.look import look
from jumbo_bo.study.guess import guess
from jumbo_bo.study.job import render
from jumbo_bo.study.study_file import load
from jumbo_bo.study.table import read_table

JOURNAL = b"""{"op_code":0,"worker_id":"w","study_name":"s","directions":[1]}
{"op_code":4,"worker_id":"w","study_id":0,"datetime_start":"2026-01-01T00:00:00.000000"}
"""
FORMULA_SPACE = {
    "a": FloatDistribution(0.0, 1.0),
    "b": FloatDistribution(0.0, 1.0, step=0.25),
    "c": FloatDistribution(1e-3, 1.0, log=True),
    "kind": CategoricalDistribution(["x", "-rf", 3]),
    "on": CategoricalDistribution([True, False]),
    "T (C)": FloatDistribution(20, 90),
}


def csv(rng: random.Random, folder: Path) -> None:
    file = folder / rng.choice(("runs.csv", "runs.tsv"))
    file.write_bytes(damaged(rng, CSV))
    read_history(file, SPACE, task=rng.choice((None, "task")), on_bad_rows=rng.choice(("skip", "error")))


def init(rng: random.Random, folder: Path) -> None:
    """`jumbo init`: what it writes, it can read."""
    file = folder / "runs.csv"
    file.write_bytes(damaged(rng, CSV))
    found = guess(read_table(file).frame)
    text = study_text("study", found.space, found.direction, ["runs.csv"], found.columns, found.notes)
    study = folder / "study.toml"
    study.write_text(text, encoding="utf-8")
    load(study).history()


def jsonl(rng: random.Random, folder: Path) -> None:
    file = folder / "runs.jsonl"
    file.write_bytes(damaged(rng, JSONL) if rng.random() < 0.7 else json_lines(odd_row(rng) for _ in range(4)))
    read_history(file, SPACE)


def parquet(rng: random.Random, folder: Path) -> None:
    file = folder / "runs.parquet"
    file.write_bytes(damaged(rng, parquet_file(rng.choice(("uncompressed", "zstd", "snappy")))))
    read_history(file, SPACE)


def study(rng: random.Random, folder: Path) -> None:
    file = folder / "study.toml"
    file.write_bytes(damaged(rng, STUDY))
    read = load(file)
    render(read.job, read.space.decode(read.space.sample(np.random.default_rng(0), 1)[0]))


def conditional(rng: random.Random, folder: Path) -> None:
    """A study with conditions and limits."""
    _sampled(written(folder / "study.toml", damaged(rng, CONDITIONAL)))


def constrained(rng: random.Random, folder: Path) -> None:
    """A study with constraints, beliefs, and a list of what may be tried."""
    text, stock = (damaged(rng, good) if rng.random() < 0.6 else good for good in (CONSTRAINED, STOCK))
    written(folder / "stock.csv", stock)
    _sampled(written(folder / "study.toml", text))


def _sampled(file: Path) -> None:
    found = load(file)
    assert found.listed is None or all(found.space.allows(params) for params in found.listed)
    for params in [found.space.decode(u) for u in found.space.sample(np.random.default_rng(0), 2)]:
        assert found.space.allows(params)
        render(found.job, params)


def formula(rng: random.Random, folder: Path) -> None:
    """What holds is said of every configuration, and those that are drawn meet it."""
    text = damaged(rng, rng.choice(FORMULAS)).decode(errors="replace")
    if rng.random() < 0.5:
        space = Space(FORMULA_SPACE, constraints=[text])
        assert all(space.allows(space.decode(u)) for u in space.sample(np.random.default_rng(0), 2))
    else:
        space = Space(FORMULA_SPACE | {"extra": FloatDistribution(0, 1)}, conditions={"extra": text})
        for params in [space.decode(u) for u in space.sample(np.random.default_rng(0), 2)]:
            assert space.decode(space.encode(params)) == params


def tell(rng: random.Random, folder: Path) -> None:
    data = damaged(rng, TELL) if rng.random() < 0.7 else json_lines([{**value_of_keys(rng)}])
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
            optimizer().tell({"lr": 0.01, "units": 64, "opt": "sgd"}, odd_number(rng))
        case 2:
            number_of(atom(rng), rng.choice(("", "line 1: ")))
        case _:
            file = folder / "study.toml"
            low, high, step = (odd_number(rng) for _ in range(3))
            extra = rng.choice(("", f", step = {step!s}", ", log = true"))
            kind = rng.choice(("float", "int"))
            file.write_text(f'name = "s"\n[space]\nx = {{ type = "{kind}", low = {low}, high = {high}{extra} }}\n')
            space = load(file).space
            for u in (0.0, 0.3, 1.0):
                params = space.decode([u])
                assert space.decode(space.encode(params)) == params


def net(rng: random.Random, folder: Path) -> None:
    good = net_file()
    length = struct.unpack("<Q", good[:8])[0]
    if rng.random() < 0.5:
        data = damaged(rng, good)
    else:  # the header alone, which stays as long as it says
        header = damaged(rng, good[8 : 8 + length])
        data = struct.pack("<Q", len(header)) + header + good[8 + length :]
    if rng.random() < 0.5:
        data = altered_net(rng, good)
    file = folder / "net.safetensors"
    file.write_bytes(data)
    past = FeatureNet.load(file, SPACE)
    t = SPACE.transform(SPACE.sample(np.random.default_rng(1), 3))
    past.predictions(t)
    assert all(np.isfinite(block).all() for block in past.blocks(t).values())


def wandb(rng: random.Random, folder: Path) -> None:
    kinds: list[Callable[[], Path]] = [
        lambda: written(folder / "runs.csv", damaged(rng, CSV)),
        lambda: written(folder / "runs.json", damaged(rng, json.dumps([RUN, RUN]).encode())),
        lambda: written(folder / "runs.jsonl", json_lines([RUN, {key: value(rng) for key in RUN}])),
        lambda: wandb_folder(folder, damaged(rng, YAML), b'{"value": 0.5}'),
        lambda: wandb_folder(folder, YAML, damaged(rng, b'{"value": 0.5}')),
    ]
    if find_spec("wandb"):
        kinds.append(lambda: wandb_log(rng, folder))
    from_wandb(rng.choice(kinds)(), SPACE)


def ray(rng: random.Random, folder: Path) -> None:
    trial = folder / "tune" / "trial_1"
    report = {"value": 0.5, "config": CONFIG, "epoch": 1}
    state = {"trial_data": [[json.dumps({"relative_logdir": "trial_1", "status": "TERMINATED"}), "x"]]}
    parts = {
        trial / "params.json": json.dumps(CONFIG).encode(),
        trial / "result.json": json_lines([report, report]),
        trial / "progress.csv": b"value,epoch\n0.7,1\n0.5,2\n",
        trial.parent / "experiment_state-1.json": json.dumps(state).encode(),
    }
    if rng.random() < 0.5:
        del parts[trial / "result.json"]
    for file in rng.sample(sorted(parts), rng.choice((1, 1, 2))):
        parts[file] = damaged(rng, parts[file])
        if rng.random() < 0.2:
            parts[file] = json_lines([value(rng)])
    for file in sorted(trial.glob("*")) + sorted(trial.parent.glob("*.json")):
        file.unlink()
    for file, data in parts.items():
        written(file, data)
    from_ray(folder / "tune", SPACE, which=rng.choice(("last", "best")))


def find(rng: random.Random, folder: Path) -> None:
    """One file among good and damaged ones never ends the search; what is said to be usable can be read."""
    old = folder / "old"
    shutil.rmtree(old, ignore_errors=True)
    wandb_folder(old / "w", damaged(rng, YAML), damaged(rng, b'{"value": 0.5}'))
    for name, data in {
        "a.csv": CSV,
        "b.jsonl": JSONL,
        "c.parquet": parquet_file("zstd"),
        "d.json": json.dumps([RUN, RUN]).encode(),
        "e.journal": JOURNAL,
        "f.db": b"SQLite format 3\0" + CSV,
        "tune/trial_1/params.json": json.dumps(CONFIG).encode(),
        "tune/trial_1/result.json": json_lines([{"value": 0.5, "config": CONFIG}]),
    }.items():
        if rng.random() < 0.3:
            written(old / name, damaged(rng, data))
    lines = [f"{name} = {toml.written(toml.parameter(dist))}" for name, dist in SPACE.distributions.items()]
    study = written(folder / "study.toml", "\n".join(['name = "new"', "[space]", *lines, ""]).encode())
    found = look(load(study), [str(old)], (), Wanted())
    json.dumps(found.to_json(), allow_nan=False)
    if not found.new:
        raise UserError("nothing that can be used")
    append(study, entries(found.new, folder))
    load(study).history()


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
    f.__name__: f
    for f in (
        csv,
        init,
        jsonl,
        parquet,
        study,
        conditional,
        constrained,
        formula,
        tell,
        values,
        net,
        wandb,
        ray,
        find,
        address,
    )
}


warnings.simplefilter("ignore")  # of columns that had to be guessed; not what is looked for here
