"""Files and Optuna studies: same rows, same History; errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_storage, from_study, read_history
from jumbo_bo.space.space import Space

SPACE = Space({"lr": FloatDistribution(1e-5, 0.1, log=True), "act": CategoricalDistribution(["relu", "tanh"])})
FRAME = pl.DataFrame(
    {
        "lr": [1e-4, 1e-3, None, 1e-2, 0.02],
        "act": ["relu", "tanh", "relu", "relu", "tanh"],
        "value": [0.1, 2.0, 3.0, 0.5, 1e7],
        "set": ["a", "a", "b", "b", "b"],
    }
)


def write(frame: pl.DataFrame, file: Path) -> Path:
    match file.suffix:
        case ".csv":
            frame.write_csv(file)
        case ".tsv":
            frame.write_csv(file, separator="\t")
        case ".parquet":
            frame.write_parquet(file)
        case _:
            frame.write_ndjson(file)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".ndjson"])
def test_every_format_gives_the_same_history(tmp_path, suffix):
    h = read_history(write(FRAME, tmp_path / f"runs{suffix}"), SPACE, task="set")
    assert h.fingerprint == History.from_frame(FRAME, SPACE, task="set").fingerprint
    assert [d.reason for d in h.reports[0].dropped["b"]] == ["lr is empty"]


@pytest.mark.parametrize(("suffix", "row"), [(".csv", 4), (".tsv", 4), (".jsonl", 3), (".parquet", 2)])
def test_rows_are_numbered_as_a_person_sees_them(tmp_path, suffix, row):
    frame = FRAME.with_columns(lr=pl.Series(["1e-4", "1e-3", "auto", "1e-2", "0.02"]))
    file = write(frame, tmp_path / f"runs{suffix}")
    with pytest.raises(ValueError, match="'lr' is 'auto'") as caught:
        read_history(file, SPACE, task="set", on_bad_rows="error")
    expected = f"{file} row {row}: 'lr' is 'auto', expected a number in [1e-05, 0.1]; "
    assert str(caught.value) == expected + 'drop the row or pass on_bad_rows="skip"'


def test_a_late_odd_cell_does_not_stop_the_file(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("lr,act,value\n" + "0.01,relu,1\n" * 5000 + "auto,tanh,2\n0.02,tanh,NaN\n0.02,tanh,3\n")
    h = read_history(file, SPACE)
    assert h.n_rows == 5001
    assert "runs.csv row 5002" in "".join(h.summary().split("\n")).replace("    ", " ")


def test_each_file_is_a_task_named_by_its_stem(tmp_path):
    for name in ("b", "a"):
        write(FRAME, tmp_path / f"{name}.csv")
    h = read_history(tmp_path / "*.csv", SPACE, target="b")
    assert [t.name for t in h.tasks] == ["a"]
    assert h.target is not None
    assert h.target.name == "b"
    listed = read_history([tmp_path / "b.csv", str(tmp_path / "a.csv")], SPACE, target="b")
    assert listed.fingerprint == h.fingerprint


def test_files_of_one_stem_stay_apart(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write(FRAME, tmp_path / folder / "runs.csv")
    h = read_history(str(tmp_path / "**" / "*.csv"), SPACE)
    assert [t.name for t in h.tasks] == ["x/runs.csv", "y/runs.csv"]


def test_files_with_a_task_column_share_tasks(tmp_path):
    write(FRAME[:2], tmp_path / "1.csv")
    write(FRAME[2:], tmp_path / "2.parquet")
    h = read_history([tmp_path / "1.csv", tmp_path / "2.parquet"], SPACE, task="set")
    assert h.fingerprint == History.from_frame(FRAME, SPACE, task="set").fingerprint


def test_one_unusable_file_among_others_is_only_reported(tmp_path):
    write(FRAME, tmp_path / "good.csv")
    write(FRAME.with_columns(lr=9.0), tmp_path / "bad.csv")
    h = read_history(tmp_path / "*.csv", SPACE)
    assert [t.name for t in h.tasks] == ["good"]
    assert "no usable rows" in h.summary()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs.csv", None, "runs.csv does not exist"),
        ("runs.csv", b"", "runs.csv is empty"),
        ("runs.csv", b"lr,act,value\n", "runs.csv: no rows"),
        ("runs.csv", b"lr,act,value\n0.1,relu,1,7\n", "runs.csv cannot be read as CSV: found more fields"),
        ("runs.csv", b"lr,act,value\n0.1,r\xe9lu,1\n", "runs.csv cannot be read as CSV: invalid utf-8"),
        ("runs.csv", b"lr,act,valu\n0.1,relu,1\n", "runs.csv has no column 'value'; did you mean 'valu'.*objective="),
        ("runs.csv", b"lr,act,value\n9,relu,1\n", "none of 1 rows can be used; .*runs.csv row 2: 'lr' is 9"),
        ("runs.csv", b"eta,value\n9,1\n", r"runs.csv: none of the parameters \['lr', 'act'\].*rename="),
        ("runs.parquet", b"no parquet at all", "runs.parquet cannot be read as PARQUET"),
        ("runs.jsonl", b'{"lr": 0.1, "value": 1}\n{"lr"\n', "runs.jsonl line 2: not JSON"),
        ("runs.jsonl", b"[1, 2]\n{\n", "runs.jsonl line 1: expected an object"),
        ("runs.xlsx", b"x", r"runs.xlsx has an unknown file type '.xlsx'; expected one of .csv, .tsv, .parquet"),
        ("*.csv", None, "no files match"),
        (".", None, "is a folder; pass a glob"),
    ],
)
def test_errors_name_the_file(tmp_path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_history(file, SPACE)


def test_no_files_at_all():
    with pytest.raises(ValueError, match="no files given"):
        read_history([], SPACE)


def test_jsonl_as_python_writes_it(tmp_path):
    rows: list[dict[str, Any]] = [
        {"lr": 0.01, "act": "relu", "value": float("nan")},
        {"lr": 0.01, "act": "relu", "value": 1},
        {"act": "tanh", "value": 2.5, "lr": "0.02"},
        {"act": "tanh", "value": float("inf"), "lr": 0.02},
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    h = read_history(file, SPACE)
    assert h.tasks[0].y.tolist() == [-1.0, -2.5]
    assert [d.reason for d in h.reports[0].dropped["runs"]] == ["value is empty or NaN", "value is not finite"]


def study(name: str, direction: str = "minimize", storage: str | None = None) -> optuna.Study:
    return optuna.create_study(study_name=name, direction=direction, storage=storage)


def trial(lr: float, act: str, value: float | None, **more: Any) -> optuna.trial.FrozenTrial:
    dists = dict(SPACE.distributions)
    return create_trial(params={"lr": lr, "act": act}, distributions=dists, value=value, **more)


@pytest.fixture(autouse=True)
def _quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_sqlite_storage_round_trip(tmp_path):
    url = f"sqlite:///{tmp_path / 'old.db'}"

    def objective(t: optuna.Trial) -> float:
        lr, act = t.suggest_float("lr", 1e-5, 0.1, log=True), t.suggest_categorical("act", ["relu", "tanh"])
        return float(np.log(lr) ** 2 + (act == "relu"))

    for name, direction in (("one", "minimize"), ("two", "maximize")):
        s = optuna.create_study(
            study_name=name, direction=direction, storage=url, sampler=optuna.samplers.RandomSampler(seed=0)
        )
        s.optimize(objective, n_trials=5)
    h = from_storage(url, SPACE)
    assert [t.name for t in h.tasks] == ["one", "two"]
    kept = optuna.load_study(study_name="one", storage=url).trials
    np.testing.assert_array_equal(h.tasks[0].u, [SPACE.encode(t.params) for t in kept])
    np.testing.assert_array_equal(h.tasks[0].y, [-t.value for t in kept])
    np.testing.assert_array_equal(h.tasks[1].y, -h.tasks[0].y)  # same points, other direction
    only = from_storage(url, SPACE, ["two"], target="two")
    assert (len(only.tasks), only.target is not None) == (0, True)
    with pytest.raises(ValueError, match=r"has no study 'tw'; did you mean 'two'.*it has \['one', 'two'\]"):
        from_storage(url, SPACE, ["tw"])


def test_pruned_failed_and_unfinished_trials():
    s = study("s")
    s.add_trial(trial(0.01, "relu", 1.0))
    s.add_trial(trial(0.02, "relu", None, state=TrialState.PRUNED, intermediate_values={0: 9.0, 3: 2.0}))
    s.add_trial(trial(0.03, "relu", None, state=TrialState.PRUNED))
    s.add_trial(trial(0.04, "relu", None, state=TrialState.FAIL))
    s.add_trial(trial(0.05, "relu", None, state=TrialState.FAIL))
    s.ask()
    h = from_study(s, SPACE)
    assert h.tasks[0].y.tolist() == [-1.0, -2.0]
    counts = {d.reason: d.count for d in h.reports[0].dropped["s"]}
    assert counts == {"trial was pruned before it reported a value": 1, "trial failed": 2, "trial is not finished": 1}
    assert h.reports[0].read == {"s": 6}
    assert "2 x trial failed, e.g. study 's' trial 3" in h.summary()


def test_bad_trial_is_named_by_its_number():
    s = study("s")
    s.add_trial(trial(0.01, "relu", None, state=TrialState.FAIL))
    s.add_trial(create_trial(params={"lr": 5.0}, distributions={"lr": FloatDistribution(0, 10)}, value=1.0))
    with pytest.raises(ValueError, match=r"study 's' trial 1: 'lr' is 5.0, expected a number in"):
        from_study(s, SPACE, on_bad_rows="error")


def test_studies_of_one_name_stay_apart():
    studies = [study("s"), study("s")]
    for s in studies:
        s.add_trial(trial(0.01, "relu", 1.0))
        s.add_trial(trial(0.02, "tanh", 2.0))
    assert [t.name for t in from_study(studies, SPACE).tasks] == ["s", "s #2"]


def test_a_parameter_called_value_and_mixed_choices():
    space = Space({"value": FloatDistribution(0, 1), "depth": CategoricalDistribution(["auto", 3, None, True])})
    s = study("s")
    for i, depth in enumerate(["auto", 3, None, True]):
        s.add_trial(
            create_trial(
                params={"value": i / 4, "depth": depth}, distributions=dict(space.distributions), value=float(i)
            )
        )
    (task,) = from_study(s, space).tasks
    assert [space.decode(u) for u in task.u] == [t.params for t in s.trials]


def test_what_a_study_cannot_be():
    with pytest.raises(ValueError, match="no rows"):
        from_study(study("s"), SPACE)
    with pytest.raises(ValueError, match="no studies given"):
        from_study([], SPACE)
    with pytest.raises(TypeError, match="direction= is read from the study itself"):
        from_study(study("s"), SPACE, direction="minimize")


def test_storage_errors(tmp_path):
    missing = tmp_path / "none.db"
    with pytest.raises(FileNotFoundError, match=r"none\.db does not exist"):
        from_storage(f"sqlite:///{missing}", SPACE)
    assert not missing.exists()
    bad = tmp_path / "bad.db"
    bad.write_text("no database " * 100)
    with pytest.raises(ValueError, match=r"bad\.db cannot be read as an Optuna storage: file is not a database"):
        from_storage(f"sqlite:///{bad}", SPACE)
    with pytest.raises(ValueError, match="cannot be read as an Optuna storage") as caught:
        from_storage("nosuch://me:secret@host/db", SPACE)
    assert "secret" not in str(caught.value)
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    optuna.storages.RDBStorage(empty)
    with pytest.raises(ValueError, match="has no studies"):
        from_storage(empty, SPACE)


def test_the_papers_files(data_dir):
    names = ["activation_fn_1", "batch_size", "dropout_1", "init_lr", "lr_schedule"]
    files = [data_dir / "jumbo-authors" / f"{name}_e3.csv" for name in ("naval", "parkinsons", "protein")]
    frame = pl.concat([pl.read_csv(f, columns=names) for f in files])
    space = Space({n: CategoricalDistribution(frame[n].unique().sort().to_list()) for n in names})
    h = read_history(files, space, objective="valid_mse_epoch3", target="naval_e3")
    assert {t.name: len(t.y) for t in h.tasks} == {"parkinsons_e3": 956, "protein_e3": 974}
    assert h.target is not None
    assert len(h.target.y) == 964


def test_noise_for_a_missing_parameter_differs_between_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x,value\n" + "".join(f"{i / 9},{i}\n" for i in range(10)))
    space = Space({"x": FloatDistribution(0, 1), "new": FloatDistribution(0, 1)})
    first, second = read_history(str(tmp_path / "*.csv"), space).tasks
    assert (first.u[:, 0] == second.u[:, 0]).all()
    assert not (first.u[:, 1] == second.u[:, 1]).any()
