"""The open experiments as a table with empty columns for the results: for paper, and for a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from optuna.trial import FrozenTrial

from jumbo_bo.runner.answers import suggestion_of
from jumbo_bo.study.study_file import StudyFile

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")  # of text that spreadsheets may run as a formula


def as_csv(file: StudyFile, trials: Iterable[FrozenTrial]) -> bytes:
    """Numbers are numbers; text that a spreadsheet would take for a formula begins with an apostrophe."""
    names, limits = file.space.names, [limit.name for limit in file.limits]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(cell, ["trial", *names, "expected", "low", "high", "value", *limits, "notes"]))
    for trial in trials:
        predicted = suggestion_of(trial)["predicted"] or {}
        settings = [trial.params.get(name, "") for name in names]
        expected = [predicted.get(key, "") for key in ("mean", "low", "high")]
        writer.writerow(map(cell, [trial.number, *settings, *expected, "", *["" for _ in limits], ""]))
    return out.getvalue().encode("utf-8-sig")  # spreadsheets know UTF-8 by its mark


def cell(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    if isinstance(value, int | float):  # also True and False
        return value
    text = str(value)
    return f"'{text}" if text.lstrip(" ").startswith(STARTS) else text
