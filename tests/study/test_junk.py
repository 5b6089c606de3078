"""Columns that are no parameters, and ones that only look like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from jumbo_bo.study.column import parameter

RNG = np.random.default_rng(11)
N = 60


def found(name: str, values: Any) -> tuple[Any, str]:
    cells = [v.item() if isinstance(v, np.generic) else v for v in values]
    return parameter(pl.Series(name, cells))


def some(*values: str) -> list[str]:
    return [str(v) for v in RNG.choice(values, N)] + list(values)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("p", some("9f3c2e1", "a81b22d", "03e1f9c"), "a hash or an id"),
        ("p", some("0x9f3c2e1a", "0xa81b22d0"), "a hash or an id"),
        ("p", some("3k2x9a0q", "z81b2c7d", "f00x1y2z"), "a hash or an id"),
        ("p", some("550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "a uuid"),
        ("git_commit", some("main1", "main2"), "a hash"),
        ("config_sha", some("x", "y"), "a hash"),
        ("p", some("2024/03/01 10:00", "2024/03/02 11:30"), "a time"),
        ("p", some("1.3.2024 10:00", "02.3.2024"), "a time"),
        ("p", some("20240301_101500", "20240302-111500"), "a time"),
        ("p", some("Mar 3, 2024", "March 14 10:22"), "a time"),
        ("p", some("0:01:12.345", "1 day, 2:03:04.5"), "a duration"),
        ("p", some("12.3s", "8.25 s"), "a duration"),
        ("p", some("/data/a", "s3://bucket/b"), "a path"),
        ("p", some("10.0.3.4", "10.0.3.17"), "a machine"),
        ("p", some("gpu-node-01", "gpu-node-02"), "a machine"),
        ("p", some("node3", "node12.hpc.example"), "a machine"),
        ("p", some("ip-10-0-3-4.ec2.internal", "worker7"), "a machine"),
        ("p", some("mercury.lan", "venus.lan"), "a machine"),
        ("p", some("NVIDIA A100-SXM4-40GB", "Tesla V100"), "hardware"),
        ("p", some("GeForce RTX 3090", "H100", "T4"), "hardware"),
        ("p", some("Intel(R) Xeon(R) Gold", "AMD EPYC 7763"), "hardware"),
        ("gpu", some("big", "small"), "hardware"),
        ("gpu", RNG.integers(0, 8, N), "hardware"),
        ("Hostname", some("mercury", "venus"), "a machine"),
        ("user_name", some("ann", "bob"), "bookkeeping"),
        ("owner", some("ann", "bob"), "a person"),
        ("log_dir", some("a", "b"), "a path"),
        ("duration", RNG.uniform(3, 90, N).round(1), "a duration"),
        ("time_total_s", RNG.uniform(3, 90, N), "a measured time"),
        ("time_s", RNG.uniform(3, 90, N), "a duration"),
        ("gpu_hours", RNG.uniform(3, 90, N), "a measured time"),
        ("elapsed", RNG.integers(3, 90, N), "a duration"),
        ("duration_s", RNG.uniform(3, 90, N), "a duration"),
        ("Duration (min)", RNG.uniform(3, 90, N), "a duration"),
        ("runtime_seconds", RNG.integers(3, 90, N), "a duration"),
        ("p", np.cumsum(RNG.integers(1, 9, N)), "rises with every row"),
        ("p", RNG.integers(0, 2**32, N), "identifiers"),
        ("ts", 1.7e9 + RNG.uniform(0, 1e6, N), "a time"),
    ],
)
def test_what_is_left_out(name: str, values: Any, reason: str) -> None:
    made, why = found(name, values)
    assert made is None
    assert why.startswith("left out")
    assert reason in why
    wanted, _ = parameter(pl.Series(name, values), wanted=True)
    assert wanted is not None, "who asks for it gets it"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("activation", some("relu6", "gelu", "swish1")),
        ("block", some("conv3x3", "conv5x5")),
        ("layers", some("conv1", "conv2", "conv3")),
        ("optimizer_name", some("adam", "sgd")),
        ("model", some("google/bert-base", "facebook/bart-large")),
        ("ratio", some("1:10", "1:20", "10:90")),
        ("rest", some("10 min", "2 h")),
        ("base", some("1310-73-2", "1310-58-3")),  # CAS numbers
        ("well", some("A10", "B12", "A30")),
        ("size", some("small", "large")),
        ("p", some("cpu", "gpu")),
        ("n_gpus", [1, 2, 4] * 20),
        ("gpus", [1, 2, 4] * 20),
        ("num_cpu", [1, 2, 4] * 20),
        ("duration", [5, 10, 15, 20, 30] * 12),
        ("duration_min", [5, 10, 15, 20, 30] * 12),
        ("anneal_seconds", [30, 60, 90] * 20),
        ("cure_time", RNG.uniform(1, 60, N)),
        ("units", np.sort(RNG.choice(np.arange(16, 1025, 16), N, replace=False))),
        ("hash_size", [16, 32, 64] * 20),
        ("memory", 2.0**30 * RNG.integers(1, 65, N)),
        ("frequency", RNG.uniform(1e9, 5e9, N)),
        ("pH", RNG.uniform(3, 9, N).round(1)),
    ],
)
def test_what_only_looks_like_it(name: str, values: Any) -> None:
    made, why = found(name, values)
    assert made is not None, why
