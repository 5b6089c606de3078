"""study.toml: everything `jumbo run`, `ask`, `tell`, `status` and `report` need to know about a study.

`load` checks all of it at once. A mistake is an error that names the file, the key, what was found and what to write.
"""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from jumbo_bo.data.frames import Columns, closest
from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_storage, read_history
from jumbo_bo.data.storage import checked, opened, sqlite_file
from jumbo_bo.errors import UserError
from jumbo_bo.methods import METHODS
from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Params, Space
from jumbo_bo.study import toml

KINDS = ("files", "optuna", "mlflow", "wandb", "ray")
OPTIONS = {kind: tuple(f.name for f in fields(Columns)) for kind in KINDS} | {
    "optuna": ("studies", "target", "rename", "fill", "on_bad_rows")  # a study knows the rest
}
OPTIONS["mlflow"] += ("experiments",)
OPTIONS["ray"] += ("which",)
BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
UNSAFE = re.compile(r'^[.~ ]|[/\\:*?"<>|]')  # in the name of a folder


@dataclass(frozen=True)
class Past:
    """One source of old runs."""

    kind: Literal["files", "optuna", "mlflow", "wandb", "ray"]
    where: tuple[str, ...]  # paths, globs or one address; relative paths start at the study file's folder
    options: Mapping[str, Any]  # of the reader: task, objective, direction, target, rename, fill, on_bad_rows, ...


@dataclass(frozen=True)
class Job:
    """How one trial is evaluated."""

    command: tuple[str, ...]  # '{lr}' becomes the value of lr; empty: a person evaluates (jumbo ask / jumbo tell)
    input: Literal["arguments", "json"] = "arguments"  # json: the parameters on standard input
    value: str = "value"  # key of the last JSON line the command prints; a bare number is a value, too
    workers: int = 1
    timeout: float | None = None  # seconds per attempt
    retries: int = 0


@dataclass(frozen=True)
class StudyFile:
    path: Path
    name: str
    space: Space
    storage: str = "sqlite:///study.db"  # as written; see `address`
    direction: Literal["minimize", "maximize"] = "minimize"
    trials: int = 50
    method: str = "jumbo-joint"
    seed: int = 0
    past: tuple[Past, ...] = ()
    job: Job = Job(())

    @property
    def folder(self) -> Path:
        return self.path.absolute().parent

    @property
    def runs(self) -> Path:
        """Where every trial leaves its files."""
        return self.folder / f"{self.name}.runs"

    @property
    def address(self) -> str:
        """The storage, wherever the command is started from."""
        return _located(self.storage, self.folder)

    def history(self) -> History | None:
        """The old runs of all sources, None when the file names none."""
        parts = []
        for i, past in enumerate(self.past, 1):
            try:
                parts.append(_read(past, self.space, self.direction, self.folder))
            except (UserError, ValueError, OSError) as error:
                raise UserError(f"{self.path}, {_numbered(i, self.past)} ({past.kind}): {error}") from error
        try:
            return History.combine(*parts) if parts else None
        except ValueError as error:  # two targets
            raise UserError(f"{self.path}, history: {error}") from error


def load(path: str | os.PathLike[str]) -> StudyFile:
    file = Path(at_home(path))
    top = toml.read(file)
    top.only(*(f.name for f in fields(StudyFile) if f.name not in ("path", "past", "job")), "history", "objective")
    name = top.take("name", NAME)
    storage = top.take("storage", toml.TEXT, StudyFile.storage)
    try:
        _check_kept(storage)
    except UserError as error:
        raise top.error(f"storage: {error}") from None
    space = toml.space(top)
    entries = top.values.get("history", [])
    entries = [entries] if isinstance(entries, dict) else entries  # [history] is as good as [[history]]
    if not (isinstance(entries, list) and all(isinstance(e, dict) for e in entries)):
        raise top.wrong("history", 'tables: [[history]] and below it files = "runs/*.csv"')
    past = tuple(_past(toml.Table(file, _numbered(i, entries), entry), space) for i, entry in enumerate(entries, 1))
    return StudyFile(
        file,
        name,
        space,
        storage,
        top.take("direction", DIRECTION, StudyFile.direction),
        top.take("trials", toml.whole(1), StudyFile.trials),
        top.take("method", toml.one_of(*METHODS), StudyFile.method),
        top.take("seed", toml.whole(0), StudyFile.seed),
        past,
        _job(top.table("objective"), space) if "objective" in top.values else Job(()),
    )


def render(job: Job, params: Params) -> list[str]:
    """The command of one trial, ready to be started without a shell."""

    def put(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else _word(params[match[1]])  # '{{' is '{'

    command = [BRACES.sub(put, argument) for argument in job.command]
    if job.input == "arguments" and not _placeholders(job.command):
        command += [word for name, value in params.items() for word in (f"--{name}", _word(value))]
    return command


def space_record(space: Space) -> dict[str, str]:
    """The space as it is kept with the study."""
    return {name: distribution_to_json(dist) for name, dist in space.distributions.items()}


def space_changes(record: Mapping[str, str], space: Space) -> list[str]:
    """What is different now, a line for each parameter. Their order does not matter."""
    was, now = {name: json_to_distribution(text) for name, text in record.items()}, space.distributions
    changed = [
        f"{name}: was {span(was[name])}, now {span(dist)}" if name in was else f"{name}: new"
        for name, dist in now.items()
        if name not in was or was[name] != dist
    ]
    return changed + [f"{name}: gone" for name in was if name not in now]


def check_space(kept: Mapping[str, str] | None, space: Space) -> None:
    """`kept` is the record of the study, None when it has none yet."""
    if changes := space_changes(kept or {}, space) if kept else []:
        raise UserError(
            f"the space is not the one this study was started with ({'; '.join(changes)}). Put it back as it was, or "
            "give the study a new name; its trials so far can be a [[history]] of the new one (optuna = its storage)"
        )


def span(dist: BaseDistribution) -> str:
    """A parameter's values in words."""
    if isinstance(dist, CategoricalDistribution):
        return " | ".join(map(repr, dist.choices))
    assert isinstance(dist, FloatDistribution | IntDistribution)
    details = ["integer"] * isinstance(dist, IntDistribution) + ["log"] * dist.log
    details += [f"step {dist.step}"] if dist.step not in (None, 1) else []
    return f"{dist.low} to {dist.high}" + (f" ({', '.join(details)})" if details else "")


def _read(past: Past, space: Space, direction: str, folder: Path) -> History:
    options = dict(past.options)
    if past.kind == "optuna":
        address = _located(past.where[0], folder)
        url = checked(address)
        kept = sqlite_file(url) if url else Path(address)
        if kept is not None and not kept.exists():
            raise UserError(f"{kept} does not exist; check the address {past.where[0]!r}")
        with opened(address, create=False) as storage:
            return from_storage(storage, space, options.pop("studies", None), **options)
    options = {"direction": direction} | options
    if past.kind == "mlflow":
        from jumbo_bo.data.trackers import from_mlflow

        where = past.where[0]
        plain = "://" not in where and not where.startswith("file:")
        return from_mlflow(_path(where, folder) if plain else _located(where, folder), space, **options)
    paths = [_path(text, folder) for text in past.where]
    if past.kind == "files":
        return read_history(paths, space, **options)
    from jumbo_bo.data.trackers import from_ray, from_wandb

    return (from_wandb if past.kind == "wandb" else from_ray)(paths, space, **options)


def _path(text: str, folder: Path) -> str:
    """From the folder of the study file; shown from the current folder when it is below that."""
    text = at_home(text)
    if os.path.isabs(text):
        return text
    # The folder's own name may look like a pattern.
    path = os.path.normpath(folder / text) if not glob.has_magic(text) else os.path.join(glob.escape(str(folder)), text)
    here = os.path.join(os.getcwd(), "")
    return path.removeprefix(here) or path


def _located(address: str, folder: Path) -> str:
    address = at_home(address)
    url = checked(address) if "://" in address else None
    file = sqlite_file(url) if url else Path(address)
    if file is None or file.is_absolute() or str(file).startswith("file:"):
        return address
    file = folder / file
    return str(file) if url is None else url.set(database=str(file)).render_as_string(hide_password=False)


def _check_kept(address: str) -> None:
    url = checked(address)
    if url is not None and url.get_backend_name() == "sqlite" and sqlite_file(url) is None:
        raise UserError(f"{address!r} would be gone with the process; write sqlite:///study.db")


def _is_name(value: Any) -> bool:  # also of a folder, see StudyFile.runs
    return toml.is_text(value) and len(value) <= 100 and value.isprintable() and not UNSAFE.search(value)


NAME = toml.Check(_is_name, 'text that can name a folder, for example "widgets"')
DIRECTION = toml.one_of("minimize", "maximize")


def _numbered(i: int, several: Sequence[object]) -> str:
    return f"history {i}" if len(several) > 1 else "history"


def _past(table: toml.Table, space: Space) -> Past:
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
    }
    options = {key: table.take(key, checks.get(key, toml.TEXT)) for key in table.values if key != kind}
    for key in ("studies", "experiments"):
        if isinstance(options.get(key), str):
            options[key] = [options[key]]
    if "rename" in options:
        roles = [options.get("objective", Columns.objective), *([options["task"]] if "task" in options else [])]
        _check_rename(table.table("rename"), [*space.names, *roles])
    for name in options.get("fill", {}):
        fill = table.table("fill")
        fill.only(*space.names)
        axis = space.axes[space.names.index(name)]
        if not math.isfinite(axis.encode([fill.values[name]])[0]):
            raise fill.wrong(name, axis.describe())
    return Past(kind, (where,) if isinstance(where, str) else tuple(where), options)


def _check_rename(table: toml.Table, known: Sequence[str]) -> None:
    for column, name in table.values.items():
        if name not in known:
            backwards = f'; the other way round: {name} = "{column}"' if column in known else ""
            words = f"a parameter ({', '.join(known)})"
            raise table.wrong(column, words + backwards, () if backwards else known)


def _job(table: toml.Table, space: Space) -> Job:
    table.only(*(f.name for f in fields(Job)))
    command: Any = table.values.get("command")
    if isinstance(command, str):
        listed = ", ".join(f'"{word}"' for word in command.split())
        raise table.wrong("command", f"a list of texts, as no shell is used: command = [{listed}]")
    if not toml.list_of(lambda v: isinstance(v, str))(command) or not command[0]:
        advice = "; without a command leave [objective] out and use `jumbo ask` and `jumbo tell`"
        raise table.wrong("command", f'a list of texts like ["python", "train.py", "--lr", "{{lr}}"]{advice}')
    for argument in command:
        if set(BRACES.sub("", argument)) & set("{}"):
            raise table.error(f"{table.name}.command has a lone brace in {argument!r}; write {{{{ or }}}} for a brace")
        for name in _placeholders([argument]):
            if name not in space.names:
                raise table.error(
                    f"{table.name}.command has {{{name}}} in {argument!r}, which is no parameter"
                    f"{closest(name, space.names)}; the parameters are {', '.join(space.names)}; "
                    "a brace that is meant as a brace is written twice"
                )
    return Job(
        tuple(command),
        table.take("input", toml.one_of("arguments", "json"), Job.input),
        table.take("value", toml.TEXT, Job.value),
        table.take("workers", toml.whole(1), Job.workers),
        table.take("timeout", toml.POSITIVE, Job.timeout),
        table.take("retries", toml.whole(0), Job.retries),
    )


def _placeholders(command: Sequence[str]) -> list[str]:
    return [m[1] for argument in command for m in BRACES.finditer(argument) if m[1] is not None]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # argparse takes '-1e-05' for an option, '-0.00001' for a number
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) and value < 0 else str(value)
