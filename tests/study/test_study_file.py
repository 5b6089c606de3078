"""study.toml: what is read, what is refused and in which words, what is written, changed spaces."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from study_texts import SMALL, SPACE, error, write

from jumbo_bo.data.spaces import record_of
from jumbo_bo.errors import UserError
from jumbo_bo.space.space import Space
from jumbo_bo.study import toml
from jumbo_bo.study.job import Job
from jumbo_bo.study.old_runs import OldRuns
from jumbo_bo.study.study_file import Stop, StudyFile, load, space_changes

FULL = """
name = "widgets"
direction = "maximize"
trials = 20
storage = "sqlite:///study.db"
method = "gp-ucb"
seed = 3

[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true }
units = { type = "int", low = 16, high = 512, step = 16 }
activation = { type = "categorical", choices = ["relu", "tanh"] }

[[history]]
files = ["runs/*.csv", "more.csv"]
task = "dataset"
objective = "loss"
direction = "minimize"
rename = { learning_rate = "lr" }
fill = { activation = "relu" }

[[history]]
optuna = "sqlite:///old.db"
studies = ["a", "b"]

[objective]
command = ["python", "train.py", "--lr", "{lr}"]
input = "json"
value = "loss"
workers = 2
timeout = 0.5
retries = 1
"""


def test_everything_is_read(tmp_path: Path) -> None:
    study = load(write(tmp_path, FULL))
    space = Space(
        {
            "lr": FloatDistribution(1e-5, 0.1, log=True),
            "units": IntDistribution(16, 512, step=16),
            "activation": CategoricalDistribution(("relu", "tanh")),
        }
    )
    columns = {"task": "dataset", "objective": "loss", "direction": "minimize"}
    columns |= {"rename": {"learning_rate": "lr"}, "fill": {"activation": "relu"}}
    assert study == StudyFile(
        tmp_path / "study.toml",
        "widgets",
        space,
        "sqlite:///study.db",
        "maximize",
        20,
        "gp-ucb",
        3,
        (
            OldRuns("files", ("runs/*.csv", "more.csv"), columns),
            OldRuns("optuna", ("sqlite:///old.db",), {"studies": ["a", "b"]}),
        ),
        Job(("python", "train.py", "--lr", "{lr}"), "json", "loss", 2, 0.5, 1),
    )
    assert study.runs == tmp_path / "widgets.runs"


def test_what_may_be_left_out(tmp_path: Path) -> None:
    study = load(write(tmp_path, SMALL))
    assert study == StudyFile(tmp_path / "study.toml", "s", SPACE)
    assert study.history() is None
    single = load(write(tmp_path, SMALL + '[history]\nfiles = "a.csv"\n'))
    assert single.old_runs == (OldRuns("files", ("a.csv",), {}),)


@pytest.mark.parametrize(
    ("storage", "address"),
    [
        ("sqlite:///study.db", "sqlite:///{folder}/study.db"),
        ("sqlite:///kept/study.db?timeout=5", "sqlite:///{folder}/kept/study.db?timeout=5"),
        ("sqlite:////data/study.db", "sqlite:////data/study.db"),
        ("study.journal", "{folder}/study.journal"),
        ("/data/study.log", "/data/study.log"),
        ("postgresql+psycopg://me:secret@host/db", "postgresql+psycopg://me:secret@host/db"),
    ],
)
def test_address_starts_at_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, address: str
) -> None:
    write(tmp_path, f'storage = "{storage}"\n{SMALL}')
    monkeypatch.chdir(tmp_path.parent)
    study = load(Path(tmp_path.name) / "study.toml")
    assert study.storage == storage
    assert study.address == address.format(folder=tmp_path)


# Where the mistake goes.
PARAMETER = 'name = "s"\n[space]\nx = { %s }\n'
TOP = "%s\n" + SMALL
ALL = "%s"


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (TOP, "trails = 5", ["'trails'", "did you mean 'trials'?", "storage"]),
        (TOP, "trials = 0", ["trials is 0", "at least 1"]),
        (TOP, "trials = 2.5", ["trials is 2.5", "whole number"]),
        (TOP, "trials = true", ["trials is True", "whole number"]),
        (TOP, "seed = -1", ["seed is -1", "at least 0"]),
        (TOP, 'direction = "minimise"', ["'minimise'", '"minimize", "maximize"', "did you mean 'minimize'?"]),
        (TOP, 'method = "jumbo-jint"', ["'jumbo-jint'", "did you mean 'jumbo-joint'?", "gp-ucb"]),
        (TOP, 'storage = "study.db"', ["storage: 'study.db'", "sqlite:///study.db"]),
        (TOP, 'storage = "sqlite://"', ["storage: 'sqlite://'", "lost when the process ends"]),
        (TOP, "history = 3", ["history is 3", "[[history]]"]),
        (TOP, "objective = 3", ["objective is 3", "a table"]),
        (ALL, "[space]\nx = 1", ["name is missing", '"widgets"']),
        (ALL, 'name = "a/b"\n', ["name is 'a/b'", "folder"]),
        (ALL, 'name = ".."\n', ["name is '..'"]),
        (ALL, 'name = "s"', ["space is missing", 'lr = { type = "float"']),
        (ALL, 'name = "s"\n[space]', ["space is {}", 'lr = { type = "float"']),
        (ALL, 'name = "s"\n[space]\nx = 3', ["space.x is 3", 'type = "float"']),
        (ALL, 'name = "s"\n[space\nx = 3', ["line 2", "'[space'"]),
        (ALL, 'name = "s"\nspace = {\n', ["line 2", "'space = {'"]),
        (ALL, 'name = "s"\nname = "t"\n[space]', ["line 2", "overwrite"]),
        (PARAMETER, "low = 0, high = 1", ["space.x.type is missing", '"float", "int", "categorical"']),
        (PARAMETER, 'type = "flaot", low = 0, high = 1', ["space.x.type is 'flaot'", "did you mean 'float'?"]),
        (PARAMETER, 'type = "float", low = 0, hihg = 1', ["space.x has an unknown key 'hihg'", "did you mean 'high'?"]),
        (PARAMETER, 'type = "float", low = 0', ["space.x.high is missing", "a number"]),
        (PARAMETER, 'type = "float", low = "0", high = 1', ["space.x.low is '0'", "a number"]),
        (PARAMETER, 'type = "float", low = 0, high = inf', ["space.x.high is inf", "a number"]),
        (PARAMETER, 'type = "int", low = 0, high = 1.5', ["space.x.high is 1.5", "a whole number"]),
        (PARAMETER, 'type = "float", low = 2, high = 1', ["low = 2 and high = 1", "low below high"]),
        (PARAMETER, 'type = "int", low = 2, high = 2', ["low below high", "never changes"]),
        (PARAMETER, 'type = "float", low = 0, high = 1, log = true', ["low = 0", "low above 0"]),
        (PARAMETER, 'type = "float", low = 1, high = 2, log = 1', ["space.x.log is 1", "true or false"]),
        (PARAMETER, 'type = "float", low = 1, high = 2, log = true, step = 0.5', ["step = 0.5", "leave one out"]),
        (PARAMETER, 'type = "int", low = 1, high = 9, log = true, step = 2', ["step = 2", "leave one out"]),
        (PARAMETER, 'type = "int", low = 1, high = 9, step = 0', ["space.x.step is 0", "above 0"]),
        (PARAMETER, 'type = "int", low = 1, high = 10, step = 4', ["misses high = 10", "write high = 9"]),
        (PARAMETER, 'type = "float", low = 0, high = 1, step = 0.3', ["write high = 0.9"]),
        (PARAMETER, 'type = "int", low = 0, high = 100000000000000', ["space: 'x'", "too fine"]),
        (PARAMETER, 'type = "categorical", choices = "relu"', ["space.x.choices is 'relu'", '["relu", "tanh"]']),
        (PARAMETER, 'type = "categorical", choices = []', ["space.x.choices is []"]),
        (PARAMETER, 'type = "categorical", choices = [1, [2]]', ["space.x.choices is [1, [2]]"]),
        (PARAMETER, 'type = "categorical", choices = [1, 1.0]', ["has duplicate choices"]),
        (PARAMETER, 'type = "categorical", choices = ["a"], low = 1', ["unknown key 'low'", "choices"]),
    ],
)
def test_mistakes_are_named_with_their_fix(tmp_path: Path, form: str, text: str, expected: list[str]) -> None:
    message = error(tmp_path, form % text)
    assert [part for part in expected if part not in message] == [], message


def test_files_that_are_no_study(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing.toml does not exist; .*jumbo init"):
        load(tmp_path / "nothing.toml")
    with pytest.raises(UserError, match="is a folder, expected a file"):
        load(tmp_path)
    (tmp_path / "study.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(UserError, match="is not text in UTF-8"):
        load(tmp_path / "study.toml")


def test_changes_of_a_space_in_words() -> None:
    before = Space(
        {
            "lr": FloatDistribution(1e-5, 0.1, log=True),
            "units": IntDistribution(1, 9, step=2),
            "same": CategoricalDistribution((1, 2.5, "a", True)),
            "activation": CategoricalDistribution(("relu", "tanh")),
            "dropout": FloatDistribution(0, 1),
        }
    )
    record = record_of(before)
    assert space_changes(record, before) == []
    after = Space(
        {
            "same": CategoricalDistribution((1, 2.5, "a", True)),
            "lr": FloatDistribution(1e-6, 0.1, log=True),
            "units": FloatDistribution(1, 9),
            "activation": CategoricalDistribution(("relu",)),
            "depth": IntDistribution(1, 3),
        }
    )
    assert space_changes(record, after) == [
        "lr: was 1e-05 to 0.1 (log), now 1e-06 to 0.1 (log)",
        "units: was 1 to 9 (integer, step 2), now 1.0 to 9.0",
        "activation: was 'relu' | 'tanh', now 'relu'",
        "depth: new",
        "dropout: gone",
    ]


TEXTS = st.text(max_size=8)
CELLS = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(TEXTS, CELLS | st.lists(CELLS) | st.dictionaries(TEXTS, st.lists(CELLS)), max_size=4))
def test_what_is_written_is_read_back(values: dict[str, Any]) -> None:
    text = "".join(f"{toml.key(name)} = {toml.written(value)}\n" for name, value in values.items())
    assert tomllib.loads(text) == values


FLOATS = st.floats(-1e6, 1e6)
DISTRIBUTIONS = st.one_of(
    st.tuples(FLOATS, FLOATS).filter(lambda r: r[0] < r[1]).map(lambda r: FloatDistribution(*r)),
    st.tuples(st.floats(1e-9, 1.0), st.floats(2.0, 1e9)).map(lambda r: FloatDistribution(*r, log=True)),
    st.tuples(st.integers(1, 50), st.integers(1, 9), st.integers(1, 9)).map(
        lambda r: IntDistribution(r[0], r[0] + r[1] * r[2], step=r[2])
    ),
    st.lists(
        TEXTS | st.booleans() | st.integers(-99, 99), min_size=1, max_size=4, unique_by=lambda v: (type(v), v)
    ).map(CategoricalDistribution),
)


@given(st.dictionaries(TEXTS, DISTRIBUTIONS, min_size=1, max_size=4).map(Space))
def test_every_space_is_read_back(space: Space) -> None:
    lines = [f"{toml.key(name)} = {toml.written(toml.parameter(dist))}" for name, dist in space.distributions.items()]
    table = toml.Table(Path("study.toml"), "", tomllib.loads("\n".join(["[space]", *lines])))
    assert toml.space(table) == space
    assert space_changes(record_of(space), toml.space(table)) == []


def test_the_stopping_rule(tmp_path: Path) -> None:
    assert load(write(tmp_path, SMALL)).stop is None
    assert load(write(tmp_path, SMALL + "[stop]\ngain = 1\n")).stop == Stop(1.0, 0.05)
    assert load(write(tmp_path, SMALL + "[stop]\ngain = 0\nchance = 0.2\n")).stop == Stop(0.0, 0.2)
    assert "stop.gain is missing, expected a number, at least 0" in error(tmp_path, SMALL + "[stop]\n")
    assert "stop.gain is -1" in error(tmp_path, SMALL + "[stop]\ngain = -1\n")
    assert "stop.chance is 5, expected a number between 0 and 1" in error(
        tmp_path, SMALL + "[stop]\ngain = 1\nchance = 5\n"
    )
    assert "unknown key 'gian'" in error(tmp_path, SMALL + "[stop]\ngian = 1\n")
