"""The text of a new study.toml, with every key explained and the unusual ones commented out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import NAME
from jumbo_bo.study.toml import key, parameter, written

WIDEST = 64  # a longer line gets its comment two spaces after its end
Line = tuple[str, str]  # TOML, comment


def study_text(
    name: str,
    space: Space,
    direction: str = "minimize",
    files: str | Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """`columns` are the options for the reader of `files`, `notes` the reasons for each column of theirs."""
    columns, notes = columns or {}, notes or {}
    return "\n".join(
        [
            "# A study for jumbo-bo. Text after # is an explanation, or an option you can enable.",
            "",
            *_aligned(_study(name, direction, space)),
            "",
            "# The parameters and their ranges. A float or int may have log = true (a logarithmic scale) or step = ...",
            "# (a grid); numeric choices are treated as ordered. One that exists only under a condition names it,",
            "# such as: when = \"optimizer == 'sgd'\".",
            "[space]",
            *_aligned(_parameters(space, columns.get("rename", {}), notes)),
            "",
            "# Runs of similar problems, one [[history]] per source: files, or optuna, mlflow, wandb, ray.",
            *_aligned(_history(files, columns, space)),
            *_left_out(notes),
            "",
            "# How `jumbo run` runs a trial: it starts this command (no shell) and reads the last line printed,",
            '# JSON like {"value": 0.123}. Without it, you run the trials yourself, with `jumbo ask` and `jumbo tell`.',
            *_aligned(_objective(space)),
            "",
            "# When `jumbo run` ends before it has made all trials.",
            *_aligned(_stop()),
            "",
        ]
    )


def study_name(output: Path, files: Sequence[str]) -> str:
    """After the study file if it has a name of its own, after the one table, or after the folder."""
    folder = output.absolute().parent.name
    table = [Path(file).stem for file in files] if len(files) == 1 else []
    wanted = [output.stem, *table, folder] if output.name != "study.toml" else [*table, folder]
    return next((name for name in wanted if NAME.right(name)), "study")


def from_folder(files: Sequence[str], folder: Path) -> str | list[str]:
    """As the study file in that folder names them. All tables of a folder become a pattern, so later ones match."""
    absolute = [Path(os.path.abspath(at_home(file))) for file in files]
    paths = [
        Path(os.path.relpath(path, folder)) if not os.path.isabs(file) or path.is_relative_to(folder) else path
        for file, path in zip(files, absolute, strict=True)
    ]
    pattern = absolute[0].parent.glob(f"*{absolute[0].suffix}")
    if len(paths) > 1 and sorted(pattern) == sorted(set(absolute)):
        return (paths[0].parent / f"*{paths[0].suffix}").as_posix()
    return paths[0].as_posix() if len(paths) == 1 else [path.as_posix() for path in paths]


def example() -> Space:
    return Space(
        {
            "lr": FloatDistribution(1e-5, 0.1, log=True),
            "units": IntDistribution(16, 512, step=16),
            "activation": CategoricalDistribution(("relu", "tanh")),
        }
    )


def _study(name: str, direction: str, space: Space) -> Iterator[Line]:
    yield f"name = {written(name)}", "name of the study in the storage"
    yield f"direction = {written(direction)}", '"minimize": smaller is better; or "maximize"'
    yield "trials = 50", "number of trials; you can add more later"
    yield 'storage = "sqlite:///study.db"', "any Optuna storage; a relative path starts at this file's folder"
    yield '# method = "jumbo-mixture"', "or jumbo, gp-ucb, rgpe, gcp, ...: see docs/baselines.md"
    yield "# seed = 0", "another seed gives other suggestions"
    for example in _constraints(space)[:1]:
        yield f"# constraints = {written([example])}", "what every suggestion has to meet: see docs/constraints.md"
    yield '# candidates = "stock.csv"', "a table of the configurations to choose from; without it, the whole space"
    yield "# bounds = [0, 100]", "the smallest and the largest value that is possible; intervals end there"


def _constraints(space: Space) -> list[str]:
    """One for each number with a plain name, for an example."""
    plain = [name for name in space if name.isidentifier() and not iskeyword(name)]
    numbers = {name: parameter(space.distributions[name]) for name in plain}
    return [f"{name} <= {made['high']}" for name, made in numbers.items() if "high" in made]


def _parameters(space: Space, rename: Mapping[str, str], notes: Mapping[str, str]) -> Iterator[Line]:
    column = {new: old for old, new in rename.items()}
    for name, dist in space.distributions.items():
        made = parameter(dist, space.conditions.get(name))
        seen = "" if "choices" in made else notes.get(column.get(name, name), "")
        yield f"{key(name)} = {written(made)}", seen


def _history(files: str | Sequence[str] | None, columns: Mapping[str, Any], space: Space) -> Iterator[Line]:
    on, first = "# " if files is None else "", space.names[0]
    task = columns.get("task")
    yield f"{on}[[history]]", ""
    yield f"{on}files = {written(files or 'runs/*.csv')}", 'a path, a pattern like "runs/*.csv", or a list of them'
    yield f"{on}objective = {written(columns.get('objective', 'loss'))}", "the column with the result"
    yield f"{on}direction = {written(columns.get('direction', 'minimize'))}", "direction of that column"
    yield (
        f"{on if task else '# '}task = {written(task or 'dataset')}",
        "the column that names the problem; without it, each file is one problem",
    )
    rename = columns.get("rename")
    yield f"{on if rename else '# '}rename = {written(rename or {'old_name': first})}", "column = parameter"
    fill = written({first: space.axes[0].decode(0.5)})
    yield f"# fill = {fill}", "for runs made before a parameter existed; otherwise random values are used"
    yield '# target = "new"', "the task that is the new problem itself, if it has runs already"
    yield '# on_bad_rows = "error"', "to stop at a row that cannot be used; otherwise it is left out and counted"


def _left_out(notes: Mapping[str, str]) -> list[str]:
    reasons = {c: why.removeprefix("left out") for c, why in notes.items() if why.startswith("left out")}
    lines = [f"#   {_clean(c + why)}" for c, why in reasons.items()]
    return ["# Columns left out:", *lines] if lines else []


def _objective(space: Space) -> Iterator[Line]:
    plain = next((name for name in space.names if not {"{", "}"} & set(name)), "lr")
    yield "# [objective]", ""
    yield (
        '# command = ["python", "train.py"]',
        f"--name value is added for all parameters; or place them: {written(f'--{plain}={{{plain}}}')}",
    )
    yield '# input = "json"', "parameters as one JSON object on standard input instead"
    yield '# value = "loss"', 'a key other than "value" in the printed line'
    yield "# workers = 2", "trials at the same time"
    yield "# timeout = 3600", "seconds for one attempt"
    yield "# retries = 1", "further attempts after a failure"


def _stop() -> Iterator[Line]:
    yield "# [stop]", ""
    yield "# gain = 0.001", "end when an improvement by more than this (in units of the objective) ..."
    yield "# chance = 0.05", "... has a lower probability than this"


def _aligned(lines: Iterable[Line]) -> list[str]:
    several = list(lines)
    width = max((len(text) for text, comment in several if comment and len(text) <= WIDEST), default=0)
    return [f"{text.ljust(width)}  # {_clean(comment)}" if comment else text for text, comment in several]


def _clean(text: str) -> str:
    """A comment cannot have line breaks or control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)
