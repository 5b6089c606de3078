"""A source of old runs in study.toml: [[history]] checked, then read."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from jumbo_bo.data.files import files_of
from jumbo_bo.data.frames import Columns
from jumbo_bo.data.history import History, Unmeasured
from jumbo_bo.data.readers import from_storage, read_history
from jumbo_bo.data.storage import checked, located, opened, sqlite_file
from jumbo_bo.errors import UserError
from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Space
from jumbo_bo.study import toml

KINDS = ("files", "optuna", "mlflow", "wandb", "ray")
OPTIONS = {kind: tuple(f.name for f in fields(Columns) if f.name != "limits") for kind in KINDS} | {
    "optuna": ("studies", "target", "rename", "fill", "on_bad_rows")  # a study knows the rest
}
OPTIONS["mlflow"] += ("experiments",)
OPTIONS["ray"] += ("which",)
DIRECTION = toml.one_of("minimize", "maximize")


@dataclass(frozen=True)
class OldRuns:
    """One source of old runs."""

    kind: Literal["files", "optuna", "mlflow", "wandb", "ray"]
    where: tuple[str, ...]  # paths, globs or one address; relative paths start at the study file's folder
    options: Mapping[str, Any]  # of the reader: task, objective, direction, target, rename, fill, on_bad_rows, ...


def old_runs_of(table: toml.Table, space: Space, limits: Sequence[str] = (), value: str | None = None) -> OldRuns:
    """`value` is the objective of a source that names none: the first of several goals."""
    kinds = [kind for kind in KINDS if kind in table.values]
    if not kinds:
        table.only(*KINDS, *dict.fromkeys(key for kind in KINDS for key in OPTIONS[kind]))  # perhaps one is misspelt
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else "none"
        more = "; write a [[history]] for each" if kinds else ""
        raise table.error(f"{table.name} has {found} of {', '.join(KINDS)}, expected exactly one{more}")
    kind: Any = kinds[0]
    table.only(kind, *OPTIONS[kind])
    where = table.take(kind, toml.TEXT if kind in ("optuna", "mlflow") else toml.TEXTS)
    checks = {
        "direction": DIRECTION,
        "on_bad_rows": toml.one_of("skip", "error"),
        "target": toml.CELL,
        "which": toml.one_of("last", "best"),
        "studies": toml.TEXTS,
        "experiments": toml.TEXTS,
        "rename": toml.TABLE,
        "fill": toml.TABLE,
        "most_rows": toml.whole(1),
    }
    options = {key: table.take(key, checks.get(key, toml.TEXT)) for key in table.values if key != kind}
    for key in ("studies", "experiments"):
        if isinstance(options.get(key), str):
            options[key] = [options[key]]
    if value is not None and "objective" in OPTIONS[kind]:
        options.setdefault("objective", value)
    if "rename" in options:
        roles = [options.get("objective", Columns.objective), *([options["task"]] if "task" in options else [])]
        _check_rename(table.table("rename"), [*space.names, *roles, *limits])
    for name in options.get("fill", {}):
        fill = table.table("fill")
        fill.only(*space.names)
        axis = space.axes[space.names.index(name)]
        if not math.isfinite(axis.encode([fill.values[name]])[0]):
            raise fill.wrong(name, axis.describe())
    return OldRuns(kind, (where,) if isinstance(where, str) else tuple(where), options)


def read(source: OldRuns, space: Space, direction: str, folder: Path, limits: Sequence[str] = ()) -> History:
    """`limits` are quantities that are read as well where the old runs have them."""
    try:
        return _read(source, space, direction, folder, limits)
    except Unmeasured as error:
        return read(source, space, direction, folder, [name for name in limits if name != error.name])


def _read(source: OldRuns, space: Space, direction: str, folder: Path, limits: Sequence[str]) -> History:
    options = dict(source.options)
    if source.kind == "optuna":
        address = located(source.where[0], folder)
        url = checked(address)
        kept = sqlite_file(url) if url else Path(address)
        if kept is not None and not kept.exists():
            raise UserError(f"{kept} does not exist; check the address {source.where[0]!r}")
        with opened(address, create=False) as storage:
            return from_storage(storage, space, options.pop("studies", None), **options)
    options = {"direction": direction} | ({"limits": limits} if limits else {}) | options
    if source.kind == "mlflow":
        from jumbo_bo.data.trackers import from_mlflow

        where = source.where[0]
        plain = "://" not in where and not where.startswith("file:")
        return from_mlflow(_path(where, folder) if plain else located(where, folder), space, **options)
    paths = [_path(text, folder) for text in source.where]
    if source.kind == "files":
        return read_history(paths, space, **options)
    from jumbo_bo.data.trackers import from_ray, from_wandb

    return (from_wandb if source.kind == "wandb" else from_ray)(paths, space, **options)


def files(source: OldRuns, folder: Path) -> list[Path]:
    """All files that it is read from; none when that cannot be told without reading them."""
    if source.kind == "files":
        found = files_of([_path(text, folder) for text in source.where])
        here = [file for file in found if isinstance(file, Path)]
        return here if len(here) == len(found) else []
    if source.kind != "optuna":
        return []
    address = located(source.where[0], folder)
    url = checked(address)
    kept = sqlite_file(url) if url else Path(address)
    if kept is None or str(kept).startswith("file:"):
        return []
    waiting = [kept.with_name(kept.name + end) for end in ("-wal", "-journal")]  # what SQLite has yet to move there
    return [kept, *(path for path in waiting if path.exists())]


def _path(text: str, folder: Path) -> str:
    """From the folder of the study file; shown from the current folder when it is below that."""
    text = at_home(text)
    if os.path.isabs(text) or "://" in text:
        return text
    # The folder's own name may look like a pattern.
    path = os.path.normpath(folder / text) if not glob.has_magic(text) else os.path.join(glob.escape(str(folder)), text)
    here = os.path.join(os.getcwd(), "")
    return path.removeprefix(here) or path


def _check_rename(table: toml.Table, known: Sequence[str]) -> None:
    for column, name in table.values.items():
        if name not in known:
            backwards = f'; the other way round: {name} = "{column}"' if column in known else ""
            words = f"a parameter ({', '.join(known)})"
            raise table.wrong(column, words + backwards, () if backwards else known)
