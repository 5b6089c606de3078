"""What was learned from old runs as a file: safetensors with a JSON header, only ever opened for its own space.

The header holds the fields of the dataclass as a tree. An array is {"array": name, "dtype": ..., "shape": ...} there,
and the file has a tensor of that name, its path in the tree: 'layers.0.1'. A file is read as the class that the caller
names, field by field along its type hints, so it cannot choose what is built.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError, brief, clip, first_line
from jumbo_bo.inputs import from_json
from jumbo_bo.paths import at_home, whole
from jumbo_bo.space.space import Space

if TYPE_CHECKING:
    from jumbo_bo.learning.past import Past

FORMAT = 5
Arrays = dict[str, npt.NDArray[Any]]
DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)  # as it shows
PLAIN: dict[Any, Any] = {int: int, float: int | float, str: str, bool: bool}
Kind = TypeVar("Kind", bound="Past")


def save(past: Past, path: str | Path) -> None:
    import safetensors.numpy

    arrays: Arrays = {}
    tree = _taken_apart(past, "", arrays)
    header = {"format": FORMAT, "kind": type(past).__name__, "space": past.space_fingerprint, "fields": tree}
    content = safetensors.numpy.save(arrays, metadata={"jumbo_bo": json.dumps(header)})
    with whole(Path(at_home(path))) as part:
        part.write_bytes(content)


def load(kind: type[Kind], path: str | Path, space: Space) -> Kind:
    path = Path(at_home(path))
    header, arrays = read(path, "save()", ", or learn from the old runs again")
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {brief(header.get('format'))}, this version reads {FORMAT}; "
            "learn from the old runs again, or use the version of jumbo-bo that wrote it"
        )
    if header.get("kind") != kind.__name__:
        raise InputError(
            f"{path} holds a {clip(str(header.get('kind')))}, not a {kind.__name__}; the method that wrote it reads it"
        )
    if header.get("space") != space.fingerprint:
        raise InputError(
            f"{path} was made for another space than {list(space.names)} "
            "(a name, a range or a list of choices differs); learn from the old runs again for this space"
        )
    try:
        past: Kind = _put_together(kind, header["fields"], arrays)
        if past.space_fingerprint != space.fingerprint:
            raise InputError("its header and its content are of different spaces")
        _try_out(past, space)
    except DAMAGE as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else first_line(error)
        raise InputError(f"{path} is damaged ({reason}); restore it from a copy or learn again") from None
    return past


def _try_out(past: Past, space: Space) -> None:
    """Sizes that fit each other may still not fit the space."""
    with np.errstate(all="ignore"):  # said below
        blocks = past.blocks(space.transform(space.unconstrained.sample(np.random.default_rng(0), 2)))
    for name, block in blocks.items():
        if len(block) != 2 or not np.isfinite(block).all():
            raise InputError(f"the features {name!r} that it computes are not finite")


def tensors(past: Past) -> Arrays:
    """All arrays, by their names in the file."""
    arrays: Arrays = {}
    _taken_apart(past, "", arrays)
    return arrays


def read(path: Path, writer: str, otherwise: str = "") -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file that `writer` has written; `otherwise` is what else helps if it cannot be read."""
    from safetensors import SafetensorError, safe_open

    fix = f"give a file written by {writer}{otherwise}"
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of one written by {writer}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = from_json((file.metadata() or {})["jumbo_bo"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, *DAMAGE) as error:
        found = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{path} was not written by jumbo-bo, or is cut off ({found}); {fix}") from None
    if not isinstance(header, dict):
        raise InputError(f"{path} has no readable header; {fix}")
    return header, arrays


def _taken_apart(value: Any, name: str, arrays: Arrays) -> Any:  # -> JSON
    names = _names(value)
    if names is not None:
        return {part: _taken_apart(getattr(value, part), _path(name, part), arrays) for part in names}
    if isinstance(value, Mapping):
        return {str(key): _taken_apart(part, _path(name, i), arrays) for i, (key, part) in enumerate(value.items())}
    if isinstance(value, list | tuple):
        return [_taken_apart(part, _path(name, i), arrays) for i, part in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[name] = np.array(value, order="C")  # as safetensors writes it
        return {"array": name, **_looks(arrays[name])}
    return value.item() if isinstance(value, np.generic) else value


def _put_together(kind: Any, value: Any, arrays: Arrays) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype", "shape"}:
        array = arrays[value["array"]]
        if (found := {"array": value["array"], **_looks(array)}) != value:
            raise InputError(
                f"{value['array']} is {found['dtype']} {found['shape']}, not {value['dtype']} {value['shape']}"
            )
        return array
    names, origin, inner = _names(kind), get_origin(kind), get_args(kind)
    if names is not None:
        hints = get_type_hints(kind)
        return kind(**{name: _put_together(hints[name], value[name], arrays) for name in names})
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(_put_together(part, v, arrays) for part, v in zip(kinds, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _put_together(inner[1], part, arrays) for key, part in value.items()}
    if origin in (Union, types.UnionType) and value is not None:
        return _put_together(next(part for part in inner if part is not type(None)), value, arrays)
    if not _fits(value, kind):
        raise InputError(f"{brief(value)} is not what it should be, {getattr(kind, '__name__', kind)}")
    return value


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if kind not in PLAIN:
        return origin not in (np.ndarray, tuple)  # those are never written as something else
    return isinstance(value, PLAIN[kind]) and isinstance(value, bool) == (kind is bool)


def _names(value: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass or of a named tuple, or of their class; None of anything else."""
    if is_dataclass(value):
        return tuple(field.name for field in fields(value))
    return getattr(value, "_fields", None) if hasattr(value, "_asdict") else None


def _looks(array: npt.NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape)}


def _path(name: str, part: object) -> str:
    return f"{name}.{part}" if name else str(part)
