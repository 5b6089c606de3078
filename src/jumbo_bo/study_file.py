"""study.toml: everything `jumbo run`, `ask`, `tell`, `status` and `report` need to know about a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jumbo_bo.space import Space


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
