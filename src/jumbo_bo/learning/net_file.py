"""A net as a file: safetensors with a JSON header, only ever opened for the space it was trained for.

Names in the file
    layer0.weight, layer0.bias, ...       the layers
    h_mean, h_sd, g_basis, g_mean, g_sd   the standardisation of the blocks
    theta.warm, theta.cold                hyperparameters of Eq. 1, if learned
    gp0.x, gp0.alpha, gp0.theta, ...      the GPs on rows, in the order of the header's `gps`
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.paths import at_home, whole
from jumbo_bo.space.space import Space

if TYPE_CHECKING:
    from jumbo_bo.learning.features import FeatureNet

Array = npt.NDArray[np.float64]

FORMAT = 2
GP_PARTS = ("x", "alpha", "theta")


def save(net: FeatureNet, path: str | Path) -> None:
    """Writes one file. A reader sees the old file or the whole new one, never half of it."""
    import safetensors.numpy

    header = {
        "format": FORMAT,
        "space": net.space_fingerprint,
        "tasks": net.tasks,
        "members": net.members,
        "warps": [asdict(warp) for warp in net.warps],
        "gps": {name: gp.weight for name, gp in net.gps.items()},
        "info": dict(net.info),
    }
    content = safetensors.numpy.save(tensors(net), metadata={"jumbo_bo": json.dumps(header)})
    with whole(Path(at_home(path))) as part:
        part.write_bytes(content)


def load(path: str | Path, space: Space, build: type[FeatureNet]) -> FeatureNet:
    """Reads what `save` wrote, for the space it was trained for."""
    path = Path(at_home(path))
    header, arrays = _read(path)
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {header.get('format')!r}, this version reads {FORMAT}; "
            "pretrain again, or use the version of jumbo-bo that wrote it"
        )
    if header.get("space") != space.fingerprint:
        raise InputError(
            f"{path} was trained for another space than {list(space.names)} "
            "(a name, a range or a list of choices differs); pretrain again for this space"
        )
    try:
        net = _rebuild(build, header, arrays, space.groups)
        if net.n_inputs != len(space.groups):
            raise InputError(f"it takes {net.n_inputs} inputs, the space gives {len(space.groups)}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path} is damaged ({reason}); restore it from a copy or pretrain again") from None
    return net


def tensors(net: FeatureNet) -> dict[str, Array]:
    """All arrays of a net, by their names in the file."""
    arrays = {name: getattr(net, name) for name in ("h_mean", "h_sd", "g_basis", "g_mean", "g_sd")}
    for i, (weight, bias) in enumerate(net.layers):
        arrays |= {f"layer{i}.weight": weight, f"layer{i}.bias": bias}
    for k, gp in enumerate(net.gps.values()):
        arrays |= {f"gp{k}.{part}": getattr(gp, part) for part in GP_PARTS}
    return arrays | {f"theta.{name}": value for name, value in net.theta.items()}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a net written by FeatureNet.save")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["jumbo_bo"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"{path} is not a net of jumbo-bo, or is cut off ({type(error).__name__}: {error}); "
            "give a file written by FeatureNet.save, or pretrain again"
        ) from None
    if not isinstance(header, dict):
        raise InputError(f"{path} has no readable header; give a file written by FeatureNet.save, or pretrain again")
    return header, arrays


def _rebuild(
    build: type[FeatureNet], header: dict[str, Any], arrays: dict[str, Array], groups: tuple[int, ...]
) -> FeatureNet:
    wrong = [name for name, array in arrays.items() if array.dtype != np.float64]
    if wrong:
        raise InputError(f"{wrong[0]} is {arrays[wrong[0]].dtype}, expected float64")
    n_layers = sum(name.endswith(".weight") for name in arrays)
    return build(
        layers=tuple((arrays[f"layer{i}.weight"], arrays[f"layer{i}.bias"]) for i in range(n_layers)),
        tasks=tuple(header["tasks"]),
        warps=tuple(Warp(**warp) for warp in header["warps"]),
        space_fingerprint=header["space"],
        theta={name.removeprefix("theta."): arrays[name] for name in arrays if name.startswith("theta.")},
        info=header["info"],
        members=header["members"],
        gps={
            name: RowGP(groups, weight, *(arrays[f"gp{k}.{part}"] for part in GP_PARTS))
            for k, (name, weight) in enumerate(header["gps"].items())
        },
        **{name: arrays[name] for name in ("h_mean", "h_sd", "g_basis", "g_mean", "g_sd")},
    )
