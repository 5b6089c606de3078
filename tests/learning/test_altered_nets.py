"""A file of a net that somebody changed is refused when it is read, not when it is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from optuna.distributions import FloatDistribution
from safetensors import safe_open

from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})


def net() -> FeatureNet:
    rng = np.random.default_rng(0)
    layers = tuple((rng.standard_normal((i, o)), rng.standard_normal(o)) for i, o in ((2, 8), (8, 4), (4, 3)))
    gp = RowGP((0, 1), 0.5, rng.random((5, 2)), rng.random(5), np.zeros(4))
    return FeatureNet.standardised(
        layers,
        rng.random((20, 2)),
        tasks=("a", "b", "c"),
        warps=(Warp(0, 0.0, 1.0),) * 3,
        space_fingerprint=SPACE.fingerprint,
        members=2,
        gps={"a": gp},
    )


def altered(file: Path, place: str, value: Any, arrays: dict[str, Any] | None = None) -> Path:
    """The file of a net with another value at a place in the tree of its fields."""
    net().save(file)
    with safe_open(file, framework="numpy") as kept:
        header = json.loads(kept.metadata()["jumbo_bo"])
        tensors = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
    node = header["fields"]
    *parents, last = [int(word) if word.isdigit() else word for word in place.split(".")]
    for parent in parents:
        node = node[parent]
    node[last] = value
    file.write_bytes(safetensors.numpy.save(tensors | (arrays or {}), metadata={"jumbo_bo": json.dumps(header)}))
    return file


def test_an_unaltered_net_is_read(tmp_path: Path) -> None:
    again = FeatureNet.load(altered(tmp_path / "net", "info", {"any": ["thing", 1]}), SPACE)
    t = np.random.default_rng(1).random((4, 2))
    assert np.array_equal(again.predictions(t), net().predictions(t))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("members", 0),
        ("members", -1),
        ("members", 3),
        ("members", 2.0),
        ("members", "2"),
        ("members", True),
        ("members", 10**400),
        ("tasks", "abc"),
        ("tasks", [1, 2, 3]),
        ("tasks", None),
        ("warps", []),
        ("warps.0.scale", 0.0),
        ("warps.0.scale", "1"),
        ("warps.0.scale", 10**400),
        ("warps.0.sign", [1]),
        ("h_mean", 1),
        ("h_mean", [0.0, 0.0, 0.0, 0.0]),
        ("h_sd", {"array": "nothing", "dtype": "float64", "shape": [4]}),
        ("layers", []),
        ("layers.0", [1]),
        ("gps.a.weight", "much"),
        ("gps.a.weight", 7),
        ("gps.a.groups", []),
        ("gps.a.groups", [0, 1.5]),
        ("gps.a.x", {}),
        ("theta", {"warm": [1, 2]}),
        ("priors", {"alone": 1}),
        ("space_fingerprint", 7),
        ("success", 3),
    ],
)
def test_other_values_are_damage(tmp_path: Path, place: str, value: Any) -> None:
    with pytest.raises(InputError, match=r"net is damaged \(.*restore it") as caught:
        FeatureNet.load(altered(tmp_path / "net", place, value), SPACE)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("shape", [(0, 8), (3, 8), (2**40, 0), (2, 0), (8,)])
def test_tensors_of_another_size_are_damage(tmp_path: Path, shape: tuple[int, ...]) -> None:
    looks = {"array": "layers.0.0", "dtype": "float64", "shape": list(shape)}
    file = altered(tmp_path / "net", "layers.0.0", looks, {"layers.0.0": np.zeros(shape)})
    with pytest.raises(InputError, match="net is damaged"):
        FeatureNet.load(file, SPACE)


def test_a_net_of_other_inputs_is_damage(tmp_path: Path) -> None:
    """Every array of it fits the others, but not the space."""
    wide = Space({**SPACE.distributions, "z": FloatDistribution(0, 1)})
    net().save(tmp_path / "net")
    text = (tmp_path / "net").read_bytes().replace(SPACE.fingerprint.encode(), wide.fingerprint.encode())
    (tmp_path / "net").write_bytes(text)
    with pytest.raises(InputError, match="net is damaged"):
        FeatureNet.load(tmp_path / "net", wide)


@pytest.mark.parametrize("header", ["[" * 5000, "1" * 5000, "[]", "7", '{"format": "x"}', '{"format": 1e999}'])
def test_a_header_that_is_none_is_damage(tmp_path: Path, header: str) -> None:
    file = tmp_path / "net"
    file.write_bytes(safetensors.numpy.save({"a": np.zeros(1)}, metadata={"jumbo_bo": header}))
    with pytest.raises(InputError, match=r"was not written by|no readable header|has format") as caught:
        FeatureNet.load(file, SPACE)
    assert len(str(caught.value)) < 600


def test_infinite_features_are_damage(tmp_path: Path) -> None:
    file = tmp_path / "net"
    looks = {"array": "h_sd", "dtype": "float64", "shape": [4]}
    for value, message in ((5e-324, "not finite"), (-1.0, "not positive"), (np.nan, "not finite")):
        with pytest.raises(InputError, match=message):
            FeatureNet.load(altered(file, "h_sd", looks, {"h_sd": np.full(4, value)}), SPACE)
