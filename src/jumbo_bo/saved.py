"""An optimizer as one file: safetensors with a JSON header, never pickle.

The header has the arguments of the optimizer and what it was told; the tensors `past` and `kept` are the bytes of the
files that these write of themselves. Rows of old runs are not in it, only what suggestions need of them (known.py).
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import distribution_to_json, json_to_distribution

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError, brief, first_line
from jumbo_bo.explain import Explanation, without_nan
from jumbo_bo.known import Kept, Remembered, kept_of
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.past_file import DAMAGE, read
from jumbo_bo.methods import METHODS
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.paths import at_home, whole
from jumbo_bo.space.beliefs import Belief
from jumbo_bo.space.space import Params, Space
from jumbo_bo.suggestion import Suggestion

FORMAT = 1
ARGUMENTS = ("direction", "n_trials", "method", "seed", "candidates")  # as they are
Bytes = npt.NDArray[np.uint8]


def save(optimizer: Optimizer, path: str | Path) -> None:
    import safetensors.numpy

    space, beliefs = optimizer.space, optimizer.beliefs
    if optimizer.recipe != METHODS.get(optimizer.method):
        raise InputError(
            f"{brief(optimizer.recipe)} has options of its own, and only methods that have a name can be saved; "
            "keep the trials (optimizer.trials) and what was learned (optimizer.past.save) instead"
        )
    if optimizer.limits:
        raise InputError(
            "an optimizer with limits cannot be saved as a file; keep what it was told, and the old runs, and tell a "
            "new one the same"
        )
    if named := [text for text, c in zip(space.constraint_texts, space.constraints, strict=True) if callable(c)]:
        raise InputError(
            f"{named[0]} is a constraint that is a function, which a file cannot hold; write it as a text, or keep the "
            "trials (optimizer.trials) and what was learned (optimizer.past.save) instead"
        )
    header = {
        "format": FORMAT,
        "space": {name: distribution_to_json(dist) for name, dist in space.distributions.items()},
        "constraints": list(space.constraints),
        "conditions": dict(space.conditions),
        **{name: getattr(optimizer, name) for name in ARGUMENTS},
        "beliefs": {name: asdict(belief) for name, belief in (beliefs.of if beliefs else {}).items()},
        "bounds": [b if math.isfinite(b) else None for b in optimizer.bounds],
        "told": [[params, y] for params, y in optimizer.told],
        "suggestions": [[s.number, s.params, s.explanation.to_json()] for s in optimizer.suggestions],
        "pending": optimizer._pending.numbers,
    }
    suggested, told = (s.params for s in optimizer.suggestions), (params for params, _ in optimizer.told)
    believed = {name: belief.value for name, belief in (beliefs.of if beliefs else {}).items()}
    _check([*told, *suggested, *(optimizer.candidates or ()), believed])
    text = json.dumps(without_nan(header))
    arrays = {name: _bytes(part) for name, part in _parts(optimizer).items()}
    content = safetensors.numpy.save(arrays | {"none": np.zeros(0, np.uint8)}, metadata={"jumbo_bo": text})
    with whole(Path(at_home(path))) as part:
        part.write_bytes(content)


def _check(configurations: Sequence[Params]) -> None:
    for params in configurations:
        for name, value in params.items():
            if not isinstance(value, bool | int | float | str | None):
                raise InputError(f"{name!r} is {brief(value)}, which a file cannot hold; use text or plain numbers")


def load(path: str | Path) -> Optimizer:
    path = Path(at_home(path))
    header, arrays = read(path, "Optimizer.save()")
    if header.get("format") != FORMAT or "told" not in header:
        raise InputError(
            f"{path} is not an optimizer that this version reads; give a file written by Optimizer.save(), or use the "
            "version of jumbo-bo that wrote it"
        )
    try:
        dists = {name: json_to_distribution(text) for name, text in header["space"].items()}
        space = Space(dists, constraints=header["constraints"], conditions=header["conditions"])
        arguments = {name: header[name] for name in ARGUMENTS}
        past = _past(arguments["method"], arrays, space)
        history: Any = Remembered(_from(Kept, arrays["kept"], space), past) if "kept" in arrays else past
        beliefs = {name: Belief(**belief) for name, belief in header["beliefs"].items()}
        low, high = header["bounds"]
        optimizer = Optimizer(space, history, bounds=(low, high), beliefs=beliefs, **arguments)
        for params, y in header["told"]:
            optimizer.tell(params, math.nan if y is None else y)
        optimizer.suggestions = [
            Suggestion(n, params, Explanation.from_json(e)) for n, params, e in header["suggestions"]
        ]
        for number in header["pending"]:
            params = optimizer.suggestions[number].params
            optimizer._pending.add(number, params, space.encode(params))
    except DAMAGE as error:
        raise InputError(f"{path} is damaged ({first_line(error)}); restore it from a copy") from None
    return optimizer


def _parts(optimizer: Optimizer) -> dict[str, Past]:
    history = optimizer.history
    found: dict[str, Past] = {} if optimizer.past is None else {"past": optimizer.past}
    if isinstance(history, Remembered):
        found["kept"] = history.kept
    elif isinstance(history, History):
        found["kept"] = kept_of(history, (), None, optimizer.seed)
    return found


def _past(method: str, arrays: dict[str, Bytes], space: Space) -> Past | None:
    kind = METHODS[method].learns
    return _from(kind, arrays["past"], space) if "past" in arrays and kind is not None else None


def _bytes(past: Past) -> Bytes:
    with tempfile.TemporaryDirectory() as folder:
        past.save(file := Path(folder) / "part.safetensors")
        return np.frombuffer(file.read_bytes(), np.uint8)


def _from(kind: type[Past], content: Bytes, space: Space) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder) / "part.safetensors").write_bytes(content.tobytes())
        return kind.load(file, space)
