"""A folder in which old runs lie in every form, and things that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import optuna
import polars as pl
from optuna.samplers import RandomSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

STUDY = """# my study
name = "widgets"  # a comment to keep
method = "random"
storage = "study.journal"

[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true }
units = { type = "int", low = 16, high = 64, step = 16 }
"""


def runs(rng: np.random.Generator, n: int, worse: float = 1.0) -> pl.DataFrame:
    """worse = -1: what is good here is bad elsewhere."""
    lr, units = 10 ** rng.uniform(-5, -1, n), rng.choice([16, 32, 48, 64], n)
    return pl.DataFrame({"lr": lr, "units": units, "loss": worse * ((np.log10(lr) + 3) ** 2 + units / 64)})


def objective(trial: optuna.Trial) -> float:
    lr = trial.suggest_float("lr", 1e-5, 0.1, log=True)
    return float((np.log10(lr) + 3) ** 2 + trial.suggest_int("units", 16, 64, step=16) / 64)


def studies(storage: str | JournalStorage, *names: str, seed: int = 0) -> None:
    for i, name in enumerate(names):
        study = optuna.create_study(study_name=name, storage=storage, sampler=RandomSampler(seed=seed + i))
        study.optimize(objective, n_trials=12)


def old_runs(folder: Path, rng: np.random.Generator) -> None:
    deep = folder / "deep"
    deep.mkdir(parents=True)
    runs(rng, 40).with_columns(dataset=pl.Series(["a", "b"] * 20)).write_csv(folder / "runs.csv")
    runs(rng, 20).rename({"lr": "params_lr", "units": "params_units", "loss": "value"}).write_csv(deep / "trials.csv")
    runs(rng, 20, -1.0).rename({"loss": "accuracy"}).write_parquet(deep / "accuracy.parquet")
    runs(rng, 20).with_columns(lr=pl.col("lr") * 1e6).write_ndjson(deep / "outside.jsonl")
    studies(f"sqlite:///{folder}/optuna.db", "monday", "tuesday")
    studies(JournalStorage(JournalFileBackend(str(folder / "o.journal"))), "friday", seed=7)
    for i, (lr, units, loss) in enumerate(runs(rng, 12).rows()):
        trial = folder / "ray" / "tuned" / f"trial_{i}"
        trial.mkdir(parents=True)
        (trial / "params.json").write_text(json.dumps({"lr": lr, "units": units}))
        (trial / "result.json").write_text(json.dumps({"loss": loss, "training_iteration": 1}) + "\n")
    for i, (lr, units, loss) in enumerate(runs(rng, 4).rows()):
        files = folder / "project" / "wandb" / f"run-20250131_12000{i}-abc{i}" / "files"
        files.mkdir(parents=True)
        (files / "config.yaml").write_text(f"lr:\n  value: {lr}\nunits:\n  value: {units}\n")
        (files / "wandb-summary.json").write_text(json.dumps({"loss": loss}))
    export = [
        {"name": f"r{i}", "config": {"lr": lr, "units": u}, "summary": {"loss": y}}
        for i, (lr, u, y) in enumerate(runs(rng, 5).rows())
    ]
    (folder / "export.jsonl").write_text("\n".join(map(json.dumps, export)))
    pl.DataFrame({"name": ["ann", "bob"], "age": [3, 5]}).write_csv(folder / "people.csv")
    (folder / "settings.json").write_text('{"lr": 1}')


def damage(folder: Path) -> None:
    (folder / "bad.parquet").write_bytes(b"PAR1 and no more")
    (folder / "empty.csv").touch()
    (folder / "bad.db").write_bytes(b"SQLite format 3\0 and no more" * 100)
    (folder / "bad.journal").write_text('{"op_code":0,"worker_id":"x"\nnothing\n')
    (folder / "bad.jsonl").write_text('{"lr": 1\n')
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x01\n" * 100)
    (folder / "cut.json").write_text('[{"config": {"lr": 0.1')
    (folder / "line.csv").write_text("x" * 1_100_000)
    (folder / "deep" / "loop").symlink_to("..")
    (folder / "deep" / "again.csv").symlink_to("../runs.csv")
    (folder / "nowhere.csv").symlink_to("missing.csv")
    os.mkfifo(folder / "pipe.csv")
