"""What was found, and the [[history]] entries that read it, added to a study file that is otherwise left as it is."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jumbo_bo.data.files import files_of
from jumbo_bo.data.storage import located
from jumbo_bo.data.trackers.runs import entries as paths_of
from jumbo_bo.errors import UserError, masked
from jumbo_bo.paths import at_home, whole
from jumbo_bo.study import toml
from jumbo_bo.study.old_runs import OldRuns
from jumbo_bo.study.study_file import StudyFile, load

PARTS = {"optuna": "studies", "mlflow": "experiments"}  # of one source, which an entry may name
SQLITE = "sqlite:///"
Key = tuple[str, str, str | None]  # kind, where, and the study or experiment; None: all of them


@dataclass(frozen=True)
class Finding:
    """One source, and what is known of it."""

    kind: str
    where: str  # as it was found
    name: str
    rows: int
    exact: bool
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the study -> column
    missing: tuple[str, ...] = ()
    objective: str | None = None
    direction: str | None = None
    task: str | None = None  # the column that tells several apart
    options: Mapping[str, Any] = field(default_factory=dict)  # of the [[history]] that reads it
    used: int | None = None  # rows inside the space, with a result; None: too large to be read whole
    tasks: tuple[str, ...] = ()
    likeness: tuple[float, ...] = ()  # of each task, where it can be told
    known: bool = False  # [[history]] names it already
    why_not: str | None = None

    @property
    def share(self) -> float:
        n = len(self.parameters) + len(self.missing)
        return len(self.parameters) / n if n else 0.0

    @property
    def usable(self) -> bool:
        return self.why_not is None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"where": masked(self.where), "share": self.share, "usable": self.usable}


def placed(where: str, folder: Path) -> str:
    """A place as a study file in that folder names it: absolute if it was found so, unless it is below the folder."""
    scheme, path = (SQLITE, where.removeprefix(SQLITE)) if where.startswith(SQLITE) else ("", where)
    if "://" in path:
        return where
    absolute = os.path.abspath(at_home(path))
    below = Path(absolute).is_relative_to(folder)
    return scheme + (Path(os.path.relpath(absolute, folder)).as_posix() if below or not os.path.isabs(path) else path)


def key_of(found: Finding) -> Key:
    part = found.options.get(PARTS.get(found.kind, ""), [found.name])[0] if found.kind in PARTS else None
    return found.kind, _real(found.where, Path.cwd()), part


def is_known(key: Key, known: set[Key]) -> bool:
    kind, where, _ = key
    above = {(kind, os.path.dirname(where), None)} if kind in ("ray", "wandb") else set()
    return bool({key, (kind, where, None), *above} & known)


def known_keys(study: StudyFile) -> set[Key]:
    """Of all that the study file names already, and of the study itself, which is no old run of its own."""
    found: set[Key] = {("optuna", _real(study.address, study.folder), study.name)}
    for source in study.old_runs:
        parts = source.options.get(PARTS.get(source.kind, ""), [None])
        with suppress(UserError):  # files that are not there; `jumbo import` says so
            found |= {(source.kind, where, part) for where in _places(source, study.folder) for part in parts}
    return found


def _places(source: OldRuns, folder: Path) -> Iterator[str]:
    if source.kind in PARTS:
        yield _real(source.where[0], folder)
        return
    paths = [text if "://" in text else os.path.join(folder, at_home(text)) for text in source.where]
    yield from (_real(str(file), folder) for file in (files_of(paths) if source.kind == "files" else paths_of(paths)))


def _real(where: str, folder: Path) -> str:
    path = at_home(where).removeprefix(SQLITE)
    return os.path.realpath(os.path.join(folder, path)) if "://" not in path else located(path, folder)


def entries(findings: Sequence[Finding], folder: Path) -> list[dict[str, Any]]:
    """As few as can be: files that are read alike share one, and so do the studies of a storage."""
    found: list[dict[str, Any]] = []
    for each in findings:
        part, where = PARTS.get(each.kind), placed(each.where, folder)
        several = each.options.get(part, []) if part else [where]
        rest = {name: value for name, value in each.options.items() if name != part}
        start = {each.kind: where} if part else {}
        for entry in found:
            name = part or each.kind
            same = {key: value for key, value in entry.items() if key != name}
            if name in entry and same == start | rest:
                entry[name] += several
                break
        else:
            found.append(start | {part or each.kind: list(several)} | rest)
    return found


def text_of_entries(added: Iterable[Mapping[str, Any]]) -> str:
    tables = ["".join(f"{key} = {toml.written(_short(value))}\n" for key, value in entry.items()) for entry in added]
    return "".join(f"\n[[history]]\n{table}" for table in tables)


def _short(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def append(file: Path, added: Sequence[Mapping[str, Any]]) -> None:
    """At the end of a study file. It is checked before it takes the place of the old one."""
    file = file.resolve()  # behind a link the file itself is written
    before, old = toml.read(file).values, file.read_bytes()
    if isinstance(before.get("history"), dict):
        raise UserError(f"{file} has one [history]; write [[history]], with two brackets, so that others can follow")
    text = ("" if old.endswith(b"\n") else "\n") + text_of_entries(added)
    new = old + text.replace("\n", "\r\n" if b"\r\n" in old else "\n").encode()
    try:
        after = tomllib.loads(new.decode())
    except tomllib.TOMLDecodeError:
        raise UserError(
            f"{file} has all history on one line; write a [[history]] for each, so that others can follow"
        ) from None
    assert {**after, "history": None} == {**before, "history": None}
    with whole(file) as part:
        part.write_bytes(new)
        load(part)
        shutil.copymode(file, part)
