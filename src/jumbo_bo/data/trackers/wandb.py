"""Weights & Biases runs -> History, from exports or from the local folder; no server is asked.

table.csv       the runs table, exported in the browser: configuration and results side by side
runs.json(l)    [{"name": ..., "state": ..., "config": {...}, "summary": {...}}, ...] as written from wandb.Api().runs
wandb/          run-*/files/config.yaml and wandb-summary.json. A run made offline has only its log, run-*.wandb,
                which is read with the wandb package.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from jumbo_bo.data.files import PathLike, readable
from jumbo_bo.data.frames import Columns
from jumbo_bo.data.history import History
from jumbo_bo.data.summary import some
from jumbo_bo.data.trackers.runs import Run, entries, flat, mapping, parsed, to_history
from jumbo_bo.errors import QUOTED, InputError, clip, first_line
from jumbo_bo.inputs import check_regular, from_json, text_of
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import spelled

BLOCK = 32768  # bytes; the log is a LevelDB log of protobuf messages
FILE_HEADER, HEADER = 7, struct.Struct("<IHB")  # of a piece: checksum, length, kind
WHOLE, LAST = 1, 4  # kinds of pieces that end a record
MOST_VALUES = 100_000  # of one configuration; far more than anybody writes
RUN_FOLDERS = "run-", "offline-run-"  # how their names begin
STATES = {"failed": "run failed", "crashed": "run crashed"}


def from_wandb(
    path: PathLike | Iterable[PathLike], space: Space, *, objective: str = "value", **columns: Any
) -> History:
    """Runs of CSV, JSON or JSONL exports and of `wandb/` folders: a path, a glob, or a list of both.

    Nested keys are joined with dots: 'opt.beta'. `task` names a configuration key, or 'group', 'project', ... where the
    export has them; by default each project is a task, named after the file or folder where the export does not tell.
    """
    options = Columns.of({**columns, "objective": objective})
    given = entries(path)
    runs = [run for entry in given for run in _runs(entry)]
    return to_history(some([str(entry) for entry in given]), runs, space, options, "project")


def first_runs(entry: Path, n: int) -> tuple[list[Run], int]:
    """A few runs, and how many there are; a folder's logs are not opened to count them."""
    if entry.is_dir():
        return list(islice(_folder(entry), n)), len(_run_folders(entry))
    runs = list(_runs(entry))
    return runs[:n], len(runs)


def _runs(entry: Path) -> Iterator[Run]:
    if entry.is_dir():
        return _folder(entry)
    readers = {".csv": _csv, ".json": _json, ".jsonl": _jsonl, ".ndjson": _jsonl}
    if entry.suffix.lower() not in readers:
        raise InputError(f"{entry} has an unknown file type; expected a wandb folder or one of {', '.join(readers)}")
    return readers[entry.suffix.lower()](entry)


def _csv(file: Path) -> Iterator[Run]:
    with readable(file):
        table = pl.read_csv(file, infer_schema_length=None, glob=False)
    if {"config", "summary"} <= set(table.columns):
        raise InputError(
            f"{file} has Python dictionaries in its columns 'config' and 'summary'; export them with json.dump "
            "or, from pandas, with to_json(orient='records')"
        )
    for i, row in enumerate(table.iter_rows(named=True), start=2):  # the header is row 1
        filled = {name: None if value == "" else value for name, value in row.items()}  # the export quotes empty cells
        yield _run(filled, file, f"row {i}", file.stem)


def _json(file: Path) -> Iterator[Run]:
    runs = parsed(text_of(file), str(file))
    if not isinstance(runs, list):
        raise InputError(
            f'{file}: expected a list of runs like [{{"config": {{"lr": 0.1}}, "summary": {{"loss": 1.5}}}}, ...]; '
            "from pandas use to_json(orient='records')"
        )
    for i, run in enumerate(runs):
        yield _run(mapping(run, f"{file} run {i}"), file, f"run {i}", file.stem)


def _jsonl(file: Path) -> Iterator[Run]:
    for i, line in enumerate(text_of(file).split("\n"), start=1):
        if line.strip():
            place = f"line {i}"
            yield _run(mapping(parsed(line, f"{file} {place}"), f"{file} {place}"), file, place, file.stem)


def _folder(folder: Path) -> Iterator[Run]:
    inside = _inside(folder)
    runs = _run_folders(folder)
    if not runs:
        raise InputError(f"{folder} has no W&B runs; expected folders like run-20250131_120000-1a2b3c4d in it")
    project = inside.absolute().parent.name
    for run in runs:
        config, summary = run / "files" / "config.yaml", run / "files" / "wandb-summary.json"
        log = next(run.glob("run-*.wandb"), None)
        if config.exists():
            found = {"config": _unwrapped(config), "summary": _summary(summary)}
        else:
            found = _log(log) if log else _none("run has neither config.yaml nor a .wandb file")
        yield _run(found, folder, f"run {run.name}", project)


def _inside(folder: Path) -> Path:
    return folder / "wandb" if (folder / "wandb").is_dir() else folder


def _run_folders(folder: Path) -> list[Path]:
    return [f for f in sorted(_inside(folder).iterdir()) if f.is_dir() and f.name.startswith(RUN_FOLDERS)]


def _run(found: Mapping[str, Any], source: Path, place: str, project: str) -> Run:
    """From an object with 'config' and 'summary', or a row that has both side by side."""
    nested = "config" in found or "summary" in found
    name, state = found.get("name") or found.get("Name"), found.get("state") or found.get("State")
    place += f" ({clip(spelled(name), QUOTED)})" if name else ""
    config, summary = (found.get("config") or {}, found.get("summary") or {}) if nested else (found, found)
    params = flat(mapping(config, f"{source} {place} 'config'"), ".")
    metrics = flat(mapping(summary, f"{source} {place} 'summary'"), ".")
    own = {k: v for k, v in found.items() if v is not None and not isinstance(v, Mapping) and k != "unusable"}
    unusable = found.get("unusable") or ("" if state in (None, "finished") else _why(state))
    return Run(
        place,
        {k: v for k, v in params.items() if not k.startswith("_")},
        {k: v for k, v in metrics.items() if not k.startswith("_wandb")},
        {**params, "project": project, **own},
        unusable,
    )


def _why(state: Any) -> str:
    return STATES.get(state, f"run is {clip(state, QUOTED)}") if isinstance(state, str) else "run has an odd state"


def _none(why: str) -> dict[str, Any]:
    return {"config": {}, "summary": {}, "unusable": why}


def _unwrapped(file: Path) -> dict[str, Any]:
    """{'lr': {'value': 0.1}} -> {'lr': 0.1}"""
    text = text_of(file)
    try:
        config = _from_yaml(text)
    except Exception as error:  # PyYAML raises whatever its parts raise: KeyError, AttributeError, RecursionError, ...
        raise InputError(f"{file}: not YAML ({first_line(error)}); delete the run's folder") from error
    items = mapping(config or {}, str(file)).items()
    return {k: v["value"] if isinstance(v, Mapping) and "value" in v else v for k, v in items if k != "wandb_version"}


def _from_yaml(text: str) -> Any:
    """A few hundred bytes of aliases can stand for more values than fit into any memory: they are counted first."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if (n := _size(node, {})) > MOST_VALUES:
            raise ValueError(f"its aliases stand for {n:.0e} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: Any, known: dict[int, float]) -> float:
    """Values below a node, those of aliases as often as they are named."""
    if id(node) not in known:
        known[id(node)] = math.inf  # what it is while it contains itself
        parts = node.value if isinstance(node.value, list) else []
        below = (part for item in parts for part in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_size(part, known) for part in below)
    return known[id(node)]


def _summary(file: Path) -> Any:
    return parsed(text_of(file), str(file)) if file.exists() else {}


def _log(file: Path) -> dict[str, Any]:
    """The run a .wandb file tells: its configuration, and the last value of everything it logged."""
    try:
        from wandb.proto.wandb_internal_pb2 import Record
    except ModuleNotFoundError:
        return _none("offline run: reading its log needs the wandb package (pip install wandb)")
    try:
        return _told(map(Record.FromString, _records(file)))
    except InputError:
        raise
    except Exception as error:  # protobuf has its own errors; and keys and values may be anything
        raise InputError(f"{file} is a damaged W&B log ({first_line(error)}); delete the run's folder") from error


def _told(records: Iterable[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"config": {}, "summary": {}, "state": "not finished"}
    for record in records:
        kind = record.WhichOneof("record_type")
        if kind == "run":
            out |= {"name": record.run.display_name, "project": record.run.project, "group": record.run.run_group}
            _update(out["config"], record.run.config)
        elif kind in ("config", "summary"):
            _update(out[kind], getattr(record, kind))
        elif kind == "exit":
            out["state"] = "failed" if record.exit.exit_code else "finished"
    return {k: None if v == "" else v for k, v in out.items()}


def _update(target: dict[str, Any], change: Any) -> None:
    for item in change.update:
        *parents, key = item.nested_key or [item.key]
        inner = target
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[key] = from_json(item.value_json)


def _records(file: Path) -> Iterator[bytes]:
    """Whole records; one that a crash cut off is not among them."""
    check_regular(file)
    data = file.read_bytes()
    if data[:4] != b":W&B":
        raise InputError(f"{file} is not a W&B log; delete the run's folder")
    at, record = FILE_HEADER, b""
    while at + HEADER.size <= len(data):
        if BLOCK - at % BLOCK < HEADER.size:  # padding: no piece starts this late in a block
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = HEADER.unpack_from(data, at)
        at += HEADER.size
        if kind == 0 or at + length > len(data):
            return
        record += data[at : at + length]
        at += length
        if kind in (WHOLE, LAST):
            yield record
            record = b""
