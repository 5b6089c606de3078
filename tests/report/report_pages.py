"""Studies to report on, and their pages as a browser reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo.data.history import History
from jumbo_bo.explain import Explanation, Prediction
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.neighbours import OldRun
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report import page
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
IDS = ["summary", "progress", "importance", "slices", "parallel", "transfer", "trust", "voices", "calibration", "map"]
IDS += ["space", "durations", "trials"]
WORDS = ("summary", "space", "trials")  # sections without a plot
FEW = [0.4, None, 0.2]
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
        made.datetime_start = made.datetime_complete - timedelta(seconds=45)
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
