"""What an optimizer has at a notebook: a dict and a table, the trials as a frame, plots, HTML, one file."""

import inspect
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo import History, Optimizer, Space, saved
from jumbo_bo.errors import InputError
from jumbo_bo.methods import GPUCB

PARAMETERS = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 9), "k": CategoricalDistribution(("a", "b"))}
SPACE = Space(PARAMETERS)


def loss(p):
    return (p["x"] - 0.3) ** 2 + 0.01 * p["n"] + (p["k"] == "b")


def runs(**columns):
    rows = [SPACE.decode(u) for u in SPACE.sample(np.random.default_rng(0), 40)]
    return pl.DataFrame(rows).with_columns(
        loss=pl.Series([loss(p) for p in rows]), dataset=pl.Series(["one", "two"] * 20), **columns
    )


def played(n=5, **options):
    optimizer = Optimizer(PARAMETERS, method="gp-ucb", n_trials=20, **options)
    for i in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, math.nan if i == 2 else loss(suggestion.params))
    return optimizer


@pytest.mark.parametrize(
    "table", [runs(), runs().lazy(), pd.DataFrame(runs().to_dicts())], ids=["polars", "lazy", "pandas"]
)
def test_a_dict_and_a_table_are_enough(table):
    optimizer = Optimizer(PARAMETERS, table)
    expected = History.from_frame(table, SPACE, task="dataset", objective="loss")
    assert optimizer.space == SPACE
    assert optimizer.history.fingerprint == expected.fingerprint


def test_what_is_named_is_not_guessed():
    table = runs(time=pl.lit(1.0)).rename({"dataset": "colour", "loss": "bitterness"})
    optimizer = Optimizer(PARAMETERS, table, objective="bitterness", task="colour", target="two")
    assert [t.name for t in optimizer.history.tasks] == ["one"]
    assert optimizer.history.target.name == "two"
    assert [t.name for t in Optimizer(PARAMETERS, table, objective="bitterness").history.tasks] == [
        "the table of old runs"
    ]


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (runs().rename({"loss": "bitterness"}), {}, "pass objective=one of"),
        (runs().rename({"loss": "accuracy"}), {}, "pass direction='maximize', or objective='accuracy'"),
        (runs(), {"objective": "lss"}, "did you mean 'loss'"),
        (None, {"objective": "loss"}, "objective= say what the columns of a table are, and history is not given"),
        (History.empty(SPACE), {"task": "dataset"}, "history is a History"),
    ],
)
def test_errors_name_the_fix(table, options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Optimizer(PARAMETERS, table, **options)


def test_a_thing_that_is_no_table():
    with pytest.raises(TypeError, match=r"history: expected a Polars, pandas or Arrow table, got list"):
        Optimizer(PARAMETERS, [1, 2])


def test_the_trials_are_those_that_were_told():
    optimizer = played()
    optimizer.tell({"x": 0.5, "n": 3, "k": "a"}, 0.125)
    frame = optimizer.trials
    assert frame.columns == ["trial", "x", "n", "k", "value", "state", "predicted", "low", "high", "why"]
    assert frame.select("x", "n", "k").to_dicts() == [p for p, _ in optimizer.told]
    assert frame["value"].to_list()[:2] == [y for _, y in optimizer.told[:2]]
    assert frame["state"].to_list() == ["done", "done", "failed", "done", "done", "done"]
    assert frame["value"][2] is None
    assert frame["predicted"].to_list()[3:] == [s.predicted.mean for s in optimizer.suggestions[3:]] + [None]
    assert frame["why"].to_list()[:5] == [s.why for s in optimizer.suggestions]
    assert Optimizer(PARAMETERS).trials.height == 0


def test_a_parameter_may_have_the_name_of_a_column():
    optimizer = Optimizer({"value": FloatDistribution(0, 1)})
    optimizer.tell({"value": 0.25}, 7.0)
    assert optimizer.trials["value"].to_list() == [0.25]


def test_plots_have_what_the_report_has():
    optimizer = played(6)
    best = optimizer.plot("progress").data[0]
    values = [y for _, y in optimizer.told if not math.isnan(y)]
    assert min(best.y) == min(values)
    parts = [optimizer.plot(kind) for kind in ("progress", "predictions", "importance", "slices")]
    whole = optimizer.plot()
    assert len(whole.data) == sum(len(part.data) for part in parts)
    axes = {(trace.xaxis, trace.yaxis) for trace in whole.data}
    assert len({x for x, _ in axes}) == 3 + SPACE.d, "a panel of its own for each"
    assert not re.search(r'"--\w+"', whole.to_json())
    with pytest.raises(InputError, match="kind is 'pie', expected one of progress"):
        optimizer.plot("pie")
    with pytest.raises(InputError, match=r"nothing to plot yet; tell\(\)"):
        Optimizer(PARAMETERS).plot()


def test_html_is_escaped_and_has_the_numbers():
    optimizer = Optimizer({"<x>": FloatDistribution(0, 1)}, method="gp-ucb")
    suggestion = optimizer.ask()
    optimizer.tell(suggestion, 0.125)
    for html in (optimizer._repr_html_(), suggestion._repr_html_()):
        assert "&lt;x&gt;" in html
        assert "<x>" not in html
        assert f"{suggestion.params['<x>']:.6g}" in html
    assert "1 trial; best 0.125" in optimizer._repr_html_()
    assert "two" in History.from_frame(runs(), SPACE, task="dataset", objective="loss")._repr_html_()


def same(a, b):
    assert a.ask() == b.ask()
    assert a.trials.equals(b.trials)


def test_a_saved_optimizer_goes_on_as_the_other_would(tmp_path):
    optimizer = played(4, bounds=(0, None), seed=3)
    pending = optimizer.ask_many(2)
    optimizer.save(tmp_path / "study")
    again = Optimizer.load(tmp_path / "study")
    same(optimizer, again)
    for one in (optimizer, again):
        one.tell(pending[0], 0.5)
    same(optimizer, again)
    assert (again.n_trials, again.bounds, again.seed, again.method) == (20, (0.0, math.inf), 3, "gp-ucb")


def test_what_was_learned_is_in_the_file(tmp_path):
    optimizer = Optimizer(PARAMETERS, runs(), target="two", method="scaml-gp")
    for u in SPACE.sample(np.random.default_rng(1), 3):
        optimizer.tell(SPACE.decode(u), loss(SPACE.decode(u)))
    optimizer.save(tmp_path / "study")
    again = Optimizer.load(tmp_path / "study")
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "study").read_bytes()
    assert again.past.tasks == ("one",)
    same(optimizer, again)


def test_candidates_are_kept(tmp_path):
    candidates = [{"x": x / 4, "n": 2, "k": "a"} for x in range(5)]
    optimizer = Optimizer(PARAMETERS, candidates=candidates, method="gp-ucb")
    optimizer.save(tmp_path / "study")
    assert Optimizer.load(tmp_path / "study").candidates == candidates


def test_every_argument_is_saved():
    """A new one needs a place in the file."""
    known = {*saved.ARGUMENTS, "self", "space", "history", "bounds", "beliefs", "limits", "columns", "cache"}
    assert set(inspect.signature(Optimizer.__init__).parameters) == known


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(InputError, match="options of its own"):
        Optimizer(PARAMETERS, method=GPUCB(initial=7)).save(tmp_path / "study")
    odd = Optimizer({"k": CategoricalDistribution(((1, 2), (3, 4)))}, method="random")
    odd.tell({"k": (1, 2)}, 1.0)
    with pytest.raises(InputError, match=r"'k' is \(1, 2\), which a file cannot hold"):
        odd.save(tmp_path / "study")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "text", "cut", "other"])
def test_a_file_that_is_none_is_said_to_be(tmp_path, damage):
    path = tmp_path / "study"
    played(2).save(path)
    if damage == "missing":
        path.unlink()
    elif damage == "text":
        path.write_text("hello")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100] if path.stat().st_size > 200 else b"")
    else:
        path.write_bytes(path.read_bytes().replace(b"told", b"tolt"))
    with pytest.raises(InputError, match="study"):
        Optimizer.load(path)


def test_parameters_that_exist_only_under_a_condition(tmp_path):
    space = Space(PARAMETERS, {"n": "k == 'a'"})
    optimizer = Optimizer(space, method="gp-ucb")
    for u in space.sample(np.random.default_rng(0), 8):
        params = space.decode(u)
        optimizer.tell(params, params["x"] + (params["k"] == "b") * 0.1)
    assert set(optimizer.trials["n"].is_null()) == {True, False}
    assert optimizer.plot("slices").data
    optimizer.save(tmp_path / "study")
    assert Optimizer.load(tmp_path / "study").space == space
    same(optimizer, Optimizer.load(tmp_path / "study"))
