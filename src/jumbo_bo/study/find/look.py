"""Everything in some places, judged for a study, and how alike it is to what is known of the new problem."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jumbo_bo.data import likeness
from jumbo_bo.data.task import Task
from jumbo_bo.errors import QUOTED, UserError, clip, first_line, masked
from jumbo_bo.space.space import Array, Space
from jumbo_bo.study.find.entries import Finding, is_known, key_of, known_keys
from jumbo_bo.study.find.heads import heads
from jumbo_bo.study.find.judge import Wanted, confirmed, judged
from jumbo_bo.study.find.places import Skipped, about, places
from jumbo_bo.study.study_file import StudyFile

READ_IN_ALL = 1_000_000_000  # bytes of files that are read whole; of those after them only the first rows: 20 s
REFERENCES = 5  # tasks that each one is compared with
MOST_COMPARED = 40  # found tasks that are compared, the first ones; 0.1 s each
MOST_ROWS = 2_000  # of a task

Table = tuple[Array, Array]  # u, y


class Found(NamedTuple):
    findings: tuple[Finding, ...]  # the best first
    skipped: tuple[Skipped, ...]

    @property
    def new(self) -> list[Finding]:
        return [each for each in self.findings if each.usable]

    def to_json(self) -> dict[str, Any]:
        return {
            "found": [each.to_json() for each in self.findings],
            "skipped": [{"where": masked(place.where), "why": place.why} for place in self.skipped],
        }


def look(
    study: StudyFile,
    given: Sequence[str],
    references: Sequence[Task],
    wanted: Wanted,
    seen: Callable[[int, int], None] = lambda entries, sources: None,
) -> Found:
    """`references` are tasks that found ones are compared with; without any, they are compared with each other."""
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    tables: list[tuple[int, Table]] = []  # of a finding, for the comparison
    known = known_keys(study)
    copies = {_print(task): f"{task.name} in the study file" for task in references}  # rows -> where they were first
    walked, left = 0, READ_IN_ALL

    def step(n: int) -> None:
        nonlocal walked
        walked = n
        seen(walked, len(findings))

    for place in places(given, [study.runs], step):
        if isinstance(place, Skipped):
            skipped.append(place)
            continue
        try:
            for head in heads(place):
                found = judged(head, study, wanted)
                if is_known(key_of(found), known):
                    found = replace(found, known=True, why_not="it is in the study file already")
                found, tasks = confirmed(found, head.size, study) if head.size <= left else (found, ())
                left -= head.size if found.used is not None else 0
                first = dict.fromkeys(copies.setdefault(_print(task), _named(found)) for task in tasks)
                if tasks and _named(found) not in first:
                    found, tasks = replace(found, why_not=f"the same runs as {clip(' and '.join(first), QUOTED)}"), ()
                tables += [(len(findings), _sampled(task)) for task in tasks[:REFERENCES]]
                findings.append(found)
                seen(walked, len(findings))
        except UserError as error:
            skipped.append(Skipped(place.where, about(place.where, error)))
        except Exception as error:  # of any library that reads files; one of them must not end the search
            skipped.append(Skipped(place.where, f"cannot be read: {first_line(error)}"))
    for i, rho in _compared(tables[:MOST_COMPARED], [_sampled(task) for task in references[:REFERENCES]], study.space):
        findings[i] = replace(findings[i], likeness=(*findings[i].likeness, rho))
    findings.sort(key=lambda each: (not each.usable, -each.share, -sum(each.likeness or (0.0,)), -each.rows))
    return Found(tuple(findings), tuple(skipped))


def _named(found: Finding) -> str:
    return f"{found.name} in {masked(found.where)}"


def _print(task: Task) -> str:
    rows = np.column_stack([task.u, task.y])
    return hashlib.sha256(rows[np.lexsort(rows.T)].tobytes()).hexdigest()


def _sampled(task: Task) -> Table:
    rows = np.random.default_rng(0).permutation(len(task.y))[:MOST_ROWS]
    return task.u[rows], task.y[rows]


def _compared(tables: Sequence[tuple[int, Table]], known: Sequence[Table], space: Space) -> list[tuple[int, float]]:
    """The mean rank correlation of each with those that are known, where it can be told."""
    found = []
    for i, table in tables:
        others = known or [other for j, other in tables if j != i][:REFERENCES]
        several = [table, *others]
        rho = likeness.on_shared(several)[0, 1:]
        if np.isnan(rho).any():
            near = likeness.of_neighbours([(space.transform(u), y) for u, y in several])[0, 1:]
            rho = np.where(np.isnan(rho), near, rho)
        if np.isfinite(rho).any():
            found.append((i, round(float(np.mean(rho[np.isfinite(rho)])), 3)))
    return found
