"""The first rows of each place: its columns, and about how many rows there are. However large it is, little is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from optuna.study import StudyDirection
from optuna.trial import TrialState

from jumbo_bo.data.files import MOST_COLUMNS, SEPARATOR, of_lines, readable, scan
from jumbo_bo.data.frames import text_or_typed
from jumbo_bo.data.storage import check_has_studies, opened
from jumbo_bo.data.trackers.mlflow import first_runs as first_mlflow_runs
from jumbo_bo.data.trackers.ray import first_trials
from jumbo_bo.data.trackers.runs import Run
from jumbo_bo.data.trackers.wandb import first_runs as first_wandb_runs
from jumbo_bo.errors import InputError
from jumbo_bo.inputs import from_json
from jumbo_bo.study.find.places import Place

PIECE = 1_000_000  # bytes of a file that are read
LARGEST = 50_000_000  # bytes of a file that can only be read as a whole: a journal, a list of runs
ROWS = 100  # of a study, an experiment or a folder
STUDIES, FEW_ROWS = 1_000, 10  # of one storage: the newest are looked at, and when there are many, fewer trials of each
VALUE = "(value)"  # of an Optuna study; cannot collide with a parameter


@dataclass(frozen=True)
class Head:
    kind: str  # as in [[history]]
    where: str
    name: str  # of the file, study or experiment
    rows: int  # that there are; see `exact`
    exact: bool  # else estimated, or at least as many
    frame: pl.DataFrame  # the first rows: parameters, and in a table also results and labels
    size: int = 0  # bytes, of a file
    metrics: pl.DataFrame | None = None  # results of the first rows, where they stand apart
    direction: str | None = None  # None: not known
    options: dict[str, Any] = field(default_factory=dict)  # that read this one alone
    problem: str = ""  # why it cannot be used, whatever its columns are


def heads(place: Place) -> Iterator[Head]:
    match place.kind:
        case "table" if not _is_export(Path(place.where)):
            yield _of_table(Path(place.where), place.size)
        case "optuna":
            yield from _of_storage(place)
        case "mlflow":
            for name, (runs, are_all) in first_mlflow_runs(place.where, ROWS).items():
                yield _of_runs(place, name, runs, len(runs), are_all, experiments=[name])
        case "ray":
            folder = Path(place.where)
            runs, n = first_trials(folder, ROWS)
            yield _of_runs(place, folder.absolute().name, runs, n)
        case _:
            _check_size(place)
            entry = Path(place.where)
            runs, n = first_wandb_runs(entry, ROWS)
            name = entry.stem if entry.is_file() else entry.absolute().parent.name
            yield _of_runs(Place("wandb", place.where, place.size), name, runs, n)


def _is_export(file: Path) -> bool:
    """Of W&B: lines with a configuration and a summary each."""
    if file.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    with file.open("rb") as lines:
        first = lines.readline(PIECE)
    try:
        run = from_json(first.decode("utf-8"))
    except ValueError:
        return False
    return isinstance(run, dict) and {"config", "summary"} <= set(run)


def _check_size(place: Place) -> None:
    if place.size > LARGEST:
        raise InputError(
            f"it can only be read as a whole and has {place.size / 1e6:,.0f} MB; if it is wanted, add it to the study "
            "file by hand"
        )


def _of_table(file: Path, size: int) -> Head:
    kind = file.suffix.lower()
    with readable(file):
        if kind == ".parquet":
            table = scan(file).lazy()
            if len(table.collect_schema()) > MOST_COLUMNS:
                raise InputError(f"{file} has more than {MOST_COLUMNS:,} columns")
            rows = int(table.select(pl.len()).collect().item())
            return Head("files", str(file), file.stem, rows, True, table.head(ROWS).collect(), size)
        with file.open("rb") as whole:
            piece = whole.read(PIECE)
        if len(piece) < size:
            piece = piece[: piece.rfind(b"\n") + 1]
        if not piece:
            raise InputError(f"{file} has a first line of more than {PIECE:,} characters")
        if kind in SEPARATOR:
            frame = pl.read_csv(BytesIO(piece), separator=SEPARATOR[kind], infer_schema_length=None)
        else:
            frame = of_lines(file, piece.decode("utf-8"))
        rows, exact = frame.height, len(piece) >= size
        return Head("files", str(file), file.stem, rows if exact else rows * size // len(piece), exact, frame, size)


def _of_storage(place: Place) -> Iterator[Head]:
    """A few trials of each study are looked at, spread over all of it."""
    check_has_studies(place.where)
    if not place.where.startswith("sqlite:"):
        _check_size(place)  # a journal is read from its first line on
    with opened(place.where, create=False) as storage:
        studies = storage.get_all_studies()
        few = max(FEW_ROWS, ROWS * FEW_ROWS // max(len(studies), FEW_ROWS))
        for study in studies[:-STUDIES]:
            yield Head(
                *("optuna", place.where, study.study_name, 0, False, pl.DataFrame()),
                options={"studies": [study.study_name]},
                problem=f"not looked at, as it is not one of the newest {STUDIES:,} studies of its storage",
            )
        for study in studies[-STUDIES:]:
            n = storage.get_n_trials(study._study_id)
            wanted = range(n) if n <= few else [i * n // few for i in range(few)]
            ids = (storage.get_trial_id_from_study_id_trial_number(study._study_id, number) for number in wanted)
            trials = [trial for trial in map(storage.get_trial, ids) if trial.state.is_finished()]
            several = len(study.directions) > 1
            known = StudyDirection.NOT_SET if several else study.directions[0]
            yield Head(
                "optuna",
                place.where,
                study.study_name,
                n,
                True,
                _frame([trial.params for trial in trials], dict.fromkeys(p for t in trials for p in t.params)),
                place.size,
                _frame([{VALUE: t.value if t.state == TrialState.COMPLETE and not several else None} for t in trials]),
                None if known == StudyDirection.NOT_SET else known.name.lower(),
                {"studies": [study.study_name]},
                f"it has {len(study.directions)} objectives" if several else "",
            )


def _of_runs(place: Place, name: str, runs: Sequence[Run], rows: int, exact: bool = True, **options: Any) -> Head:
    return Head(
        place.kind,
        place.where,
        name,
        rows,
        exact,
        _frame([run.params for run in runs]),
        place.size,
        _frame([run.metrics for run in runs]),
        options=options,
    )


def _frame(rows: Sequence[Any], names: Iterable[str] | None = None) -> pl.DataFrame:
    wanted = dict.fromkeys(name for row in rows for name in row) if names is None else names
    return pl.DataFrame([text_or_typed(name, [row.get(name) for row in rows]) for name in wanted])
