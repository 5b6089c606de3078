"""The report: every section, gaps, escaping, nothing loaded, the same page for the same study."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.data.history import History
from jumbo_bo.explain import Explanation, OldRun, Prediction
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report import page, write
from jumbo_bo.report.parallel import ticks
from jumbo_bo.space.space import Params, Space
from jumbo_bo.studies import NUMBERS, WHY, follow
from jumbo_bo.transfer import TaskTransfer, TransferReport

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1e-1, log=True),
        "units": IntDistribution(16, 512),
        "act": CategoricalDistribution(("relu", "tanh")),
    }
)
IDS = ["summary", "progress", "calibration", "parallel", "voices", "trust", "transfer", "map", "trials"]
NASTY = "</script><script>alert('1')</script> & \"q\" ünï %{x} --old"
START = datetime(2024, 5, 1, 12)


def explanation(mean: float = 0.5, **other: Any) -> Explanation:
    near = (OldRun("task-a", {"lr": 0.01, "units": 64, "act": "relu"}, 0.4, 0.05),)
    numbers: dict[str, Any] = {"old": 1.0, "new": -0.25, "trust": 0.75, "beta": 1.0, "inside_gate": None}
    predicted = Prediction(mean, 0.1, mean - 0.2, mean + 0.2)
    return Explanation("The old runs say better.", predicted, **(numbers | {"nearest": near} | other))


def trial(
    number: int,
    value: float | None = None,
    reasons: Explanation | None = None,
    state: TrialState | None = None,  # RUNNING is falsy
    space: Space = SPACE,
    params: Params | None = None,
) -> FrozenTrial:
    state = (TrialState.FAIL if value is None else TrialState.COMPLETE) if state is None else state
    chosen = params or space.decode(np.random.default_rng(number).random(space.d))
    attributes = {} if reasons is None else {WHY: reasons.why, NUMBERS: reasons.to_json() | {"params": chosen}}
    made = create_trial(
        state=state,
        params=chosen,
        distributions={name: space.distributions[name] for name in chosen},
        value=value,
        user_attrs=attributes,
    )
    made.number = number
    if made.state.is_finished():
        made.datetime_complete = START + timedelta(minutes=number)
    return made


def study(values: Sequence[float | None], **options: Any) -> list[FrozenTrial]:
    return [trial(i, y, **options) for i, y in enumerate(values)]


class Reader(HTMLParser):
    """What a browser would see: text, elements and the parts of the page that are data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def strict(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def plots(html: str) -> dict[str, Any]:
    """Read as a browser does: NaN is no JSON."""
    found = json.loads(Reader(html).scripts[0], parse_constant=strict)
    assert isinstance(found, dict)
    return found


def marks(html: str, plot: str) -> dict[str, Any]:
    return {trace["name"]: trace for trace in plots(html)[f"plot-{plot}"]["data"]}


def sections(html: str) -> dict[str, str]:
    parts = re.findall(r'<section id="(\w+)".*?</section>', html, re.DOTALL)
    return {name: re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)[0] for name in parts}  # type: ignore[index]


REPORT = TransferReport((TaskTransfer("task-a", 0.5, 0.25, 0.9),), 0.25, 0.5, 9, "The old runs help a lot.")


def full_page() -> str:
    trials = [trial(i, y, explanation(0.5)) for i, y in enumerate((0.9, 0.4, None, 0.6, 0.3))]
    trials.append(trial(5, None, explanation(0.2), TrialState.RUNNING))
    return page("widgets", SPACE, "minimize", trials, optimizer(trials), REPORT)


def optimizer(trials: Sequence[FrozenTrial]) -> Optimizer:
    """Follows the trials; its net has random weights."""
    rng = np.random.default_rng(0)
    rows = [SPACE.decode(u) for u in SPACE.sample(rng, 2000)]
    frame = pl.DataFrame(rows).with_columns(loss=pl.Series(rng.random(2000)), task=pl.Series(["a", "b"] * 1000))
    history = History.from_frame(frame, SPACE, task="task", objective="loss")
    sizes = [(len(SPACE.groups), 8), (8, 3), (3, 2)]
    layers = tuple((rng.normal(size=size), rng.normal(size=size[1])) for size in sizes)
    reference = SPACE.transform(SPACE.sample(rng, 64))
    made = Optimizer(SPACE, history)
    made.past = FeatureNet.standardised(
        layers,
        reference,
        tasks=("a", "b"),
        warps=tuple(t.warp for t in history.tasks),
        space_fingerprint=SPACE.fingerprint,
    )
    return follow(made, trials)


# Content


def test_all_sections_in_order_with_one_heading_each() -> None:
    html = full_page()
    assert list(sections(html)) == IDS
    assert set(plots(html)) == {f"plot-{name}" for name in IDS if name not in ("summary", "trials")}
    headings = [tag for tag, _ in Reader(html).tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1", "h2", "h3", *["h2"] * 8]


def test_summary() -> None:
    words = Reader(sections(full_page())["summary"]).words
    best_value = "trial 4; looking for the lowest"
    for expected in ("0.3", best_value, "1 failed", "1 running", "75%", "The old runs help a lot."):
        assert expected in words
    best = trial(4).params
    assert all(f"{name} {value}" in words for name, value in best.items())


def test_best_so_far_only_ever_improves() -> None:
    low = marks(page("w", SPACE, "minimize", study([0.9, 0.4, None, 0.6, 0.3])), "progress")
    assert (low["improvement"]["x"], low["improvement"]["y"]) == ([0, 1, 4], [0.9, 0.4, 0.3])
    assert (low["trial"]["x"], low["failed"]["x"]) == ([3], [2])
    high = marks(page("w", SPACE, "maximize", study([0.9, 0.4, None, 0.6, 1.3])), "progress")
    assert high["improvement"]["x"] == [0, 4]
    assert high["best so far"]["y"] == [0.9, 1.3, 1.3]


def test_a_pruned_trial_is_shown_but_is_never_the_best() -> None:
    pruned = trial(1, None, state=TrialState.PRUNED)
    pruned.intermediate_values = {0: 0.5, 1: 0.1}
    html = page("w", SPACE, "minimize", [trial(0, 0.4), pruned])
    assert marks(html, "progress")["pruned, last value"]["y"] == [0.1]
    assert "trial 0; looking for the lowest" in Reader(html).words


def test_an_infinite_value_counts_as_failed() -> None:
    html = page("w", SPACE, "minimize", study([0.4, math.inf, -math.inf]))
    assert marks(html, "progress")["failed"]["x"] == [1, 2]
    assert "Trials done 1 2 failed" in Reader(sections(html)["summary"]).words


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [(3, 0, "too few"), (18, 2, "in line with"), (10, 10, "too sure of itself"), (60, 0, "more careful than")],
)
def test_coverage_is_counted_and_judged(inside: int, outside: int, words: str) -> None:
    values = [0.6] * inside + [0.9] * outside
    html = page("w", SPACE, "minimize", [trial(i, y, explanation(0.5)) for i, y in enumerate(values)])
    found = Reader(sections(html)["calibration"]).words
    assert f"{inside} of {inside + outside} values" in found
    assert words in found
    drawn = marks(html, "calibration")
    assert len(drawn["inside the interval"]["x"]) == inside
    assert len(drawn.get("outside", {"x": []})["x"]) == outside


def test_a_wild_prediction_does_not_set_the_scale() -> None:
    trials = [trial(i, 0.5 + 0.01 * i, explanation(1e9 if i == 0 else 0.5)) for i in range(5)]
    plot = plots(page("w", SPACE, "minimize", trials))["plot-calibration"]
    low, high = (10**end for end in plot["layout"]["yaxis"]["range"])
    assert 0.3 < low < high < 1.0
    (arrow,) = (m for m in plot["data"] if "triangle-up" in m.get("marker", {}).get("symbol", ()))
    assert arrow["y"][arrow["marker"]["symbol"].index("triangle-up")] == pytest.approx(high)


def test_old_and_new_voices_and_trust() -> None:
    html = full_page()
    voices = marks(html, "voices")
    assert voices["old runs"]["y"] == [1.0] * 6
    assert voices["together"]["y"] == [0.75] * 6
    assert plots(html)["plot-trust"]["data"][0]["y"] == [0.75] * 6


def test_the_gate_is_shown_when_there_is_no_share_of_trust() -> None:
    sides = [True, False, True]
    trials = [trial(i, 0.1, explanation(trust=None, inside_gate=side)) for i, side in enumerate(sides)]
    html = page("w", SPACE, "minimize", trials)
    gate = marks(html, "trust")
    assert (gate["inside the gate"]["x"], gate["outside"]["x"]) == ([0, 2], [1])
    assert "inside the gate" in Reader(sections(html)["summary"]).words


def test_map_has_a_sample_of_the_old_runs_and_all_trials() -> None:
    html = full_page()
    points = marks(html, "map")
    assert len(points["old run"]["x"]) == 1500
    assert [len(points[name]["x"]) for name in ("new trial", "failed", "best")] == [4, 1, 1]
    assert points["best"]["text"] == ["4"]
    better = np.corrcoef(points["old run"]["x"], points["old run"]["marker"]["color"])[0, 1]
    assert better >= 0


def test_transfer_has_a_bar_and_a_row_for_every_task() -> None:
    html = full_page()
    bars = marks(html, "transfer")
    assert (bars["weight"]["x"], bars["gain"]["x"]) == ([0.5], [0.25])
    assert "task-a +0.50 +0.25 +0.90" in Reader(sections(html)["transfer"]).words


def test_table_of_trials() -> None:
    html = sections(full_page())["trials"]
    assert html.count("<tr") == 7
    words = Reader(html).words
    for expected in ("The old runs say better.", "running", "★ best", "1 good old run nearby", "task-a: 0.4, 5% away"):
        assert expected in words
    assert "<caption>" in html


def test_a_failed_trial_says_why() -> None:
    failed = trial(0)
    failed.user_attrs["error"] = "exit code 3"
    assert "exit code 3" in Reader(page("w", SPACE, "minimize", [failed])).words


# Parallel coordinates


def test_paths_go_through_the_parameters_in_their_places() -> None:
    good = {"lr": 1e-3, "units": 16, "act": "tanh"}
    html = page("w", SPACE, "minimize", [trial(0, 1.0, params=good), trial(1, 2.0)])
    best = marks(html, "parallel")["best"]
    assert best["x"] == [0.0, 0.5, pytest.approx(0.001, abs=1e-3), 0.75, None]
    assert best["y"] == [0, 1, 2, 3, None]


@pytest.mark.parametrize(
    ("dist", "labels"),
    [
        (FloatDistribution(1e-5, 1e-1, log=True), ["1e-05", "0.0001", "0.001", "0.01", "0.1"]),
        (FloatDistribution(0, 1), ["0", "0.25", "0.5", "0.75", "1"]),
        (CategoricalDistribution(("relu", "tanh")), ["relu", "tanh"]),
        (CategoricalDistribution((32, 8, 16)), ["8", "16", "32"]),
        (CategoricalDistribution((None, True, "a very long name of a choice")), ["None", "True", "a very long…"]),
        (FloatDistribution(2, 2), ["2"]),
    ],
)
def test_ticks_are_labelled_in_the_users_units(dist: Any, labels: list[str]) -> None:
    axis = Space({"p": dist}).axes[0]
    assert [label for _, label in ticks(axis)] == labels
    assert all(0 <= u <= 1 for u, _ in ticks(axis))


def test_ticks_of_many_levels_are_few_and_right() -> None:
    axis = Space({"p": IntDistribution(1, 10**9)}).axes[0]
    found = ticks(axis)
    assert 2 <= len(found) <= 5
    assert [u for u, _ in found] == pytest.approx([float(axis.encode([int(label)])[0]) for _, label in found])


def test_only_some_paths_of_a_large_study_are_drawn_and_the_page_says_so() -> None:
    html = page("w", SPACE, "minimize", study([float(i) for i in range(40)]))
    assert "paths are drawn per group" not in Reader(html).words
    html = page("w", SPACE, "minimize", study([float(i) for i in range(500)]))
    assert all(trace["x"].count(None) <= 20 for trace in plots(html)["plot-parallel"]["data"])
    assert "At most 20 paths are drawn per group" in Reader(html).words


# Any study renders

FEW = [0.4, None, 0.2]
MANY_PARAMETERS = Space({f"p{i}": FloatDistribution(0, 1) for i in range(30)})


@pytest.mark.parametrize(
    ("values", "space"),
    [
        ([], SPACE),
        ([0.5], SPACE),
        ([None] * 4, SPACE),
        ([0.25] * 12, SPACE),
        ([10.0**e for e in range(-8, 9)], SPACE),
        ([-(10.0**e) for e in range(-8, 9)], SPACE),
        ([1e-300, 1e300, 1e-300], SPACE),
        ([-1e308, 1e308], SPACE),
        ([float(i % 97) for i in range(2000)], SPACE),
        (FEW, MANY_PARAMETERS),
    ],
    ids=["empty", "one", "failed", "constant", "wide", "negative", "extreme", "overflow", "2000", "30 parameters"],
)
@pytest.mark.parametrize("reasons", [None, explanation()], ids=["other sampler", "ours"])
def test_any_study_renders(values: list[float | None], space: Space, reasons: Explanation | None) -> None:
    html = page("w", space, "minimize", study(values, space=space, reasons=reasons))
    assert list(sections(html)) == IDS
    drawn = plots(html)
    for name in IDS[1:-1]:
        gap = "class=gap" in sections(html)[name]
        assert gap != (f"plot-{name}" in drawn), f"{name} has neither a plot nor a reason why not"


def test_wide_positive_values_get_a_log_axis() -> None:
    def kind(values: list[float | None]) -> str:
        return str(plots(page("w", SPACE, "minimize", study(values)))["plot-progress"]["layout"]["yaxis"]["type"])

    assert kind([1e-8, 1.0, 1e8]) == "log"
    assert kind([0.1, 0.2]) == kind([-1e-8, 1e8]) == "linear"


def test_missing_and_foreign_parameters_are_gaps_not_errors() -> None:
    odd = create_trial(
        params={"lr": 0.5, "other": 3},
        distributions={"lr": FloatDistribution(0, 1), "other": IntDistribution(0, 9)},
        value=0.1,
        user_attrs={NUMBERS: "not ours"},
    )
    odd.number = 0
    html = page("w", SPACE, "minimize", [odd, trial(1, 0.2)])
    assert "other" in Reader(sections(html)["trials"]).words
    assert [t["name"] for t in plots(html)["plot-parallel"]["data"]][-1] == "best tenth"  # the best has no place


def test_without_an_optimizer_the_page_says_that_the_old_runs_were_not_read() -> None:
    found = sections(page("w", SPACE, "minimize", study(FEW)))
    assert all("not read" in found[name] for name in ("transfer", "map"))
    cold = page("w", SPACE, "minimize", study(FEW), Optimizer(SPACE))
    assert "no old runs" in sections(cold)["map"]


# The file


def test_everything_is_escaped() -> None:
    space = Space({NASTY: FloatDistribution(0, 1), "c": CategoricalDistribution((NASTY, "x"))})
    reasons = explanation(nearest=(OldRun(NASTY, {NASTY: 0.1, "c": NASTY}, 1.0, 0.1),))
    trials = [trial(i, 0.1 * i, reasons, space=space) for i in range(4)]
    trials[0].user_attrs[WHY] = NASTY
    task = TransferReport((TaskTransfer(NASTY, 0.5, 0.25, 0.9),), 0.25, 0.5, 9, NASTY)
    html = page(NASTY, space, "minimize", trials, None, task)
    reader = Reader(html)
    assert len(reader.scripts) == 3  # data, plotly, ours
    assert "alert(" not in reader.scripts[1] + reader.scripts[2]
    assert NASTY in reader.words
    labels = [word["text"] for word in plots(html)["plot-parallel"]["layout"]["annotations"]]
    assert not any("<" in label for label in labels)  # Plotly reads labels as HTML
    assert any("&lt;/script&gt;" in label for label in labels)


def test_nothing_is_loaded() -> None:
    reader = Reader(full_page())
    assert not [attrs for _, attrs in reader.tags if "src" in attrs or "srcset" in attrs]
    assert all(str(attrs["href"]).startswith("#") for _, attrs in reader.tags if "href" in attrs)
    assert not reader.all("link")
    policy = next(m["content"] for m in reader.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'")
    style = full_page().split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import|@font-face", style)


def test_the_page_can_be_read_by_everyone() -> None:
    reader = Reader(full_page())
    assert reader.all("html") == [{"lang": "en"}]
    assert "widgets" in reader.words
    drawn = [attrs for attrs in reader.all("div") if "plot" in str(attrs.get("class"))]
    assert len(drawn) == 7
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in drawn)
    targets = {attrs["id"] for _, attrs in reader.tags if "id" in attrs}
    assert {str(a["href"])[1:] for a in reader.all("a")} <= targets
    assert len(targets) == sum("id" in attrs for _, attrs in reader.tags)


def contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_stand_out(mode: int) -> None:
    css = full_page().split("<style>")[1].split("</style>")[0]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", css.split(":root {")[mode + 1].split("}")[0]))
    for text in ("ink", "muted", "focus", "bad"):
        assert contrast(colours[text], colours["page"]) >= 4.5, text
        assert contrast(colours[text], colours["card"]) >= 4.5, text
    for mark in ("rank1", "rank2"):
        assert contrast(colours[mark], colours["page"]) >= 3, mark
    for bar in ("old", "new"):  # with numbers inside
        assert contrast(colours[bar], colours["page"]) >= 4.5, bar


def test_the_same_study_gives_the_same_page() -> None:
    assert full_page() == full_page()
    trials = study(FEW)
    assert page("w", SPACE, "minimize", trials) == page("w", SPACE, "minimize", trials[::-1])
    assert "2024-05-01 12:02" in Reader(page("w", SPACE, "minimize", trials)).words


def test_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write(path, "ü\n")
    assert path.read_bytes() == "ü\n".encode()
    assert list(tmp_path.iterdir()) == [path]


# jumbo report

FILE = """
name = "widgets"
trials = 5
method = "gp-ucb"
storage = "sqlite:///study.db"
[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    return tmp_path


def stored(folder: Path, name: str = "widgets") -> None:
    made = optuna.create_study(storage=f"sqlite:///{folder}/study.db", study_name=name)
    lr = FloatDistribution(1e-5, 1e-1, log=True)
    for x in (0.001, 0.01):
        made.add_trial(create_trial(params={"lr": x}, distributions={"lr": lr}, value=x))


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["report", *arguments])


@pytest.mark.parametrize("options", [(), ("--without-old-runs",)])
def test_command_writes_the_page_and_says_where(folder: Path, options: tuple[str, ...]) -> None:
    stored(folder)
    result = command("study.toml", *options)
    assert result.exit_code == 0, result.output
    assert "report.html" in result.output
    assert "MB" in result.output
    assert "open it in a browser" in result.output
    words = Reader((folder / "report.html").read_text()).words
    assert "trial 0; looking for the lowest" in words
    assert ("not read" in words) == bool(options)
    assert command("study.toml", "--output", "friday.html", *options).exit_code == 0
    assert (folder / "friday.html").read_bytes() == (folder / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("study.toml",), "does not exist"),
        (("other.toml",), "other.toml"),
        (("study.toml", "--output", "no/where.html"), "create it first"),
        (("study.toml", "--output", "."), "is a folder"),
    ],
)
def test_command_errors_name_the_fix(folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    result = command(*arguments)
    assert result.exit_code == 1
    assert reason in result.output
    assert not (folder / "study.db").exists()
    assert not list(folder.glob("*.html"))


def test_command_on_another_study_says_which_ones_there_are(folder: Path) -> None:
    stored(folder, "gadgets")
    result = command("study.toml")
    assert result.exit_code == 1
    assert "no study 'widgets'" in result.output
    assert "'gadgets'" in result.output
