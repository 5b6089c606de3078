from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from jumbo_bo.bench import figures, reports
from jumbo_bo.bench.run import Run, run_suite

pytestmark = pytest.mark.usefixtures("small_script")
HEAD = {"commit": "a" * 40, "dirty": False, "versions": {"numpy": "2"}, "command": "c", "date": "2026-01-01"}
Put = Callable[..., Path]


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("regret_png", "regret_html"):
        monkeypatch.setattr(figures, name, lambda *_: None)


def published(out: Path) -> set[tuple[str, str, int, int, float]]:
    frame = pl.read_parquet(out / "demo" / "runs.parquet")
    rows = frame.group_by("stamp").agg(pl.all().last(), trials=pl.len()).sort("problem", "method", "seed")
    return set(rows.select("problem", "method", "seed", "trials", "regret").rows())


def test_report_from_files(tmp_path: Path, put: Put) -> None:
    for method, scale in (("good", 1.0), ("bad", 10.0)):
        for seed in (0, 1):
            more = {"unit": 1e-3, "cpu_pretraining": 3.0 + seed, "commit": method * 10, "landmarks": {"by hand": 5e-3}}
            put(method, seed, scale * (1 + seed) * 1e-3, **more)
    half = Run("demo", "p", "good", 2, 10).path(tmp_path)
    half.write_text(json.dumps({**HEAD, "trials": 10}) + "\n")  # no trials in it: not a finished run
    text = reports.report(tmp_path, "demo", None, [], ["p"])
    assert "| p, 1e-3 | seeds | 1 | 5 | 10 |" in text
    assert "| good | 2 | 1.50 ± 0.50 | 1.50 ± 0.50 | 1.50 ± 0.50 |" in text
    assert "| bad | 2 | 15.00 ± 5.00 | 15.00 ± 5.00 | 15.00 ± 5.00 |" in text
    assert "| by hand |  | 5 | 5 | 5 |" in text
    # No cold method: the worst regret, 0.02, is the guess. The geometric mean of 1 and 2 is 1.41.
    assert "| good | 1 | 0.071 [0.05, 0.1] |" in text
    assert "by hand" in (tmp_path / "demo" / "regret.html").read_text()
    assert text.index("| good") < text.index("| bad")
    assert "among 2 methods on the 2 pairs" in text
    assert "| good |" + " 1.00 [1.00, 1.00] |" * 4 in text
    assert "| good | 1.15 | 1.15 ± 0.15 |" in text
    assert "optuna-gp is not among these methods" in text
    assert "| good | 3.5 | 0.200 |" in text
    assert f"All 4 runs took {(4 * 10 * 0.3 + 2 * 7) / 3600:.2f} CPU hours." in text
    assert "different versions of the source" in text
    assert (tmp_path / "demo" / "report.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "demo" / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "../plotly.min.js" in (tmp_path / "demo" / "regret.html").read_text()
    with pytest.raises(ValueError, match=r"no finished runs of \['other'\] in demo; there are .*good"):
        reports.report(tmp_path, "demo", None, ["other"], ["p"])
    with pytest.raises(ValueError, match="bad cannot be drawn"):
        reports.report(tmp_path, "demo", None, ["good"], ["p"], ["bad"])


@pytest.mark.usefixtures("no_figures")
def test_numbers_of_all_sizes_stay_readable(tmp_path: Path, put: Put) -> None:
    for problem, value in (("small", 1.23456e-5), ("large", 123456.0), ("middle", 1234.5), ("failed", float("inf"))):
        for seed in (0, 1):
            put("a", seed, value, problem)
    text = reports.report(tmp_path, "demo", None, [], ["small", "middle", "large", "failed"])
    for name, cell in (("small", "1.23e-05 ± 0"), ("middle", "1234 ± 0"), ("large", "1.23e+05 ± 0"), ("failed", "inf")):
        assert f"| {name} | seeds | 1 | 5 | 10 |\n| --- | --- | --- | --- | --- |\n| a | 2 |{f' {cell} |' * 3}" in text


@pytest.mark.usefixtures("no_figures")
def test_many_problems_are_averaged_and_folded_away(tmp_path: Path, put: Put) -> None:
    names = [f"p{i}" for i in range(8)]
    for name in names:
        put("optuna-gp", 0, [4.0] * 5 + [1.0] * 5, name)
        put("a", 0, 1.0, name)
    few, many = (reports.report(tmp_path, "demo", None, [], chosen) for chosen in (names[:6], names))
    assert "<details>" not in few
    assert "| method | mean | p0 | p1 | p2 | p3 | p4 | p5 |\n" in few
    folded = many.split("<details>")
    assert len(folded) == 4  # of regret, of the area, of the trials to reach
    assert "| method | p0 | p1 | p2 | p3 | p4 | p5 |\n" in folded[2]
    assert "| method | p6 | p7 |\n" in folded[2]
    outside = "".join(part.split("</details>")[-1] for part in folded)
    assert not any(name in outside for name in names)
    assert "| a | 8 | 0.25 [0.25, 0.25] |" in outside
    assert "| a | 1.0 |\n" in outside
    assert all(f"| {name} | seeds | 1 | 5 | 10 |" in folded[1] for name in names)
    widest = max(line.count("|") - 1 for line in many.splitlines())
    assert widest <= 8


@pytest.mark.usefixtures("no_figures")
def test_the_average_says_how_many_problems_it_is_of(tmp_path: Path, put: Put) -> None:
    for problem in ("p", "q"):
        put("random", 0, 1.0, problem)
    put("a", 0, [0.1] * 10, "q")
    put("a", 0, [float("inf")] * 10, "none")
    text = reports.report(tmp_path, "demo", None, [], ["p", "q", "none"])
    assert "| a | 1 | 0.1 | 0.1 | 0.1 |" in text
    assert "| random | 2 | 1 [1, 1] |" in text


def test_trials_to_reach_and_methods_without_rank_are_said(
    tmp_path: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "regret_png", lambda *_: None)
    for seed in range(4):
        put("optuna-gp", seed, [5.0] * 5 + [1.0] * 5)
        put("fast", seed, [5.0] * 2 + [0.5] * 8)
        put("never", seed, 5.0)
    put("rare", 0, 0.1)
    text = reports.report(tmp_path, "demo", None, [], ["p"])
    for row in ("| optuna-gp | 6.0 | 6 |", "| fast | 3.0 | 3 |", "| never | ≥ 11.0 | never |", "| rare | 1.0 | 1 |"):
        assert row in text
    assert "Without a rank, because they have too few: rare (1 of 4 pairs)." in text
    assert "| rare | n/a | n/a | n/a | n/a |" in text
    assert "| fast | 2.00 [2.00, 2.00] | 1.00 [1.00, 1.00] |" in text
    assert "rare" not in (tmp_path / "demo" / "regret.html").read_text()
    reports.report(tmp_path, "demo", None, [], ["p"], ["rare"])
    assert "rare" in (tmp_path / "demo" / "regret.html").read_text()


@pytest.mark.usefixtures("no_figures")
def test_published_runs_need_no_single_files_and_give_way_to_new_ones(tmp_path: Path, put: Put) -> None:
    single = [put("a", 0, 1.0), put("a", 1, 3.0)]
    first = reports.report(tmp_path, "demo", None, [], ["p"])
    record = (tmp_path / "demo" / "runs.parquet").read_bytes()
    for path in single:
        path.unlink()
    assert reports.report(tmp_path, "demo", None, [], ["p"]) == first
    assert (tmp_path / "demo" / "runs.parquet").read_bytes() == record
    started: list[Run] = []
    runs = [Run("demo", "p", "a", seed, 10) for seed in (0, 1, 2)]
    run_suite(runs, tmp_path, start=lambda run, *_: started.append(run))
    assert [run.seed for run in started] == [2]  # the others are published
    put("a", 1, 5.0)
    put("b", 0, 2.0)
    again = reports.report(tmp_path, "demo", None, [], ["p"])
    assert "| a | 2 | 3 ± 2 |" in again
    assert "| b | 1 | 2 |" in again


@pytest.mark.usefixtures("no_figures")
def test_a_report_on_some_runs_loses_none_of_the_published(tmp_path: Path, put: Put) -> None:
    single = [put("a", 0, 1.0), put("b", 0, 2.0), put("b", 0, 3.0, "q"), put("a", 0, [4.0] * 5)]
    reports.report(tmp_path, "demo", 5, [], ["p", "q"])
    reports.report(tmp_path, "demo", None, [], ["p", "q"])
    everything = {("p", "a", 0, 10, 1.0), ("p", "b", 0, 10, 2.0), ("q", "b", 0, 10, 3.0), ("p", "a", 0, 5, 4.0)}
    assert published(tmp_path) == everything
    columns = pl.read_parquet(tmp_path / "demo" / "runs.parquet").columns
    for path in single:
        path.unlink()
    text = reports.report(tmp_path, "demo", None, ["a"], ["p", "q"])
    assert "| b |" not in text
    assert published(tmp_path) == everything
    reports.report(tmp_path, "demo", None, [], ["q"])
    reports.report(tmp_path, "demo", 5, [], ["p", "q"])
    assert published(tmp_path) == everything
    put("b", 0, 7.0, "q")  # not asked for: neither published nor in the way of what is
    put("a", 0, 8.0)
    reports.report(tmp_path, "demo", None, ["a"], ["p", "q"])
    assert published(tmp_path) == everything - {("p", "a", 0, 10, 1.0)} | {("p", "a", 0, 10, 8.0)}
    assert pl.read_parquet(tmp_path / "demo" / "runs.parquet").columns == columns


def test_a_record_of_other_columns_is_kept(tmp_path: Path) -> None:
    old = pl.DataFrame({"problem": "p", "method": "a", "seed": 0, "trial": 1, "stamp": '{"seed": 0}'})
    old.write_parquet(tmp_path / "runs.parquet")
    new = old.with_columns(seed=1, cpu_tell=0.5, stamp=pl.lit('{"seed": 1}'))
    reports.publish(new, tmp_path / "runs.parquet")
    assert pl.read_parquet(tmp_path / "runs.parquet")["cpu_tell"].to_list() == [None, 0.5]
    assert [path.name for path in tmp_path.iterdir()] == ["runs.parquet"]


def test_the_reference_is_always_drawn() -> None:
    names = [*"abcdefgh", "optuna-gp"]
    assert reports.most_drawn(names) == [*"abcdefg", "optuna-gp"]
    assert reports.most_drawn(list("abcdefghi")) == list("abcdefgh")
