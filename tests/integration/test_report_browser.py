"""The report in a real browser: plots are drawn, nothing is loaded or logged, phone and dark mode work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from browser import Page
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo import report
from jumbo_bo.data.history import History
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Params, Space
from jumbo_bo.studies import attributes
from jumbo_bo.transfer import transfer

pytestmark = [
    pytest.mark.integration,
    # The browser is started by a fork that does nothing but pass on two pipes.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]

NASTY = "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'> & \"ü\" %{x} --old"
SPACE = Space(
    {
        "learning_rate_of_the_second_optimizer": FloatDistribution(1e-5, 1e-1, log=True),
        "units": IntDistribution(16, 512),
        "activation": CategoricalDistribution(("relu", "tanh", NASTY)),
    }
)
PLOTS = ["progress", "importance", "slices-0", "slices-1", "slices-2", "parallel", "transfer", "trust", "voices"]
PLOTS += ["calibration", "map", "durations"]


def finished(space: Space, number: int, params: Params, value: float | None, user: dict[str, Any]) -> FrozenTrial:
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    made = create_trial(
        state=state, params=params, distributions=dict(space.distributions), value=value, user_attrs=user
    )
    made.number = number
    return made


def loss(params: Params) -> float:
    rate, units, activation = params.values()
    return float((np.log10(rate) + 3) ** 2 + units / 256 + (activation == NASTY) + 0.1)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of our own with old runs, a failed trial and a running one."""
    rng = np.random.default_rng(0)
    rows = [SPACE.decode(u) for u in SPACE.sample(rng, 120)]
    frame = pl.DataFrame(rows).with_columns(
        loss=pl.Series([loss(p) * (1 + i % 2) for i, p in enumerate(rows)]), task=pl.Series([NASTY, "b"] * 60)
    )
    history = History.from_frame(frame, SPACE, task="task", objective="loss")
    optimizer, trials = Optimizer(SPACE, history, n_trials=12), []
    for i in range(12):
        suggestion = optimizer.ask()
        value = None if i == 3 else loss(suggestion.params)
        optimizer.tell(suggestion, float("nan") if value is None else value)
        trials.append(finished(SPACE, i, suggestion.params, value, attributes(suggestion)))
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write(path, report.page(NASTY, SPACE, "minimize", trials, optimizer, transfer(optimizer)))
    return path


# Marks of a plot that have a size on the screen.
DRAWN = """Object.fromEntries([...document.querySelectorAll('.plot')].map(plot => {
  const marks = [...plot.querySelectorAll('.point, .point path, .js-line')].map(m => m.getBoundingClientRect());
  const box = plot.querySelector('.main-svg')?.getBoundingClientRect() ?? {width: 0, height: 0};
  return [plot.id.slice(5), [marks.filter(r => r.width + r.height > 0).length, box.width, box.height]];
}))"""
COLOURS = """[getComputedStyle(document.body).backgroundColor,
  ...[...document.querySelectorAll('.plot .main-svg:first-child')].map(s => getComputedStyle(s).backgroundColor)]"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INK = """[...document.querySelectorAll('.plot .xtitle, .plot .annotation-text')].map(t => getComputedStyle(t).fill)"""


def test_every_plot_is_drawn_without_a_complaint_or_a_request(tab: Page, ours: Path) -> None:
    tab.show(ours)
    drawn = tab.run(DRAWN)
    assert list(drawn) == PLOTS
    for name, (marks, width, height) in drawn.items():
        assert marks > 0, f"{name} has no visible mark"
        assert min(width, height) > 150, f"{name} is {width} x {height}"
    assert drawn["progress"][0] >= 12
    assert drawn["map"][0] >= 100
    assert tab.complaints() == []
    assert tab.requests() == [ours.as_uri()]
    assert tab.run("window.broken") is None


@pytest.mark.parametrize("width", [320, 375, 768, 1200])
def test_the_page_fits_the_screen(tab: Page, ours: Path, width: int) -> None:
    tab.show(ours, width)
    assert tab.run("innerWidth") == width
    assert tab.run(OVERFLOW) <= 0
    wide = tab.run("[...document.querySelectorAll('.plot .main-svg')].map(s => s.getBoundingClientRect().right)")
    assert wide
    assert max(wide) <= width
    assert all(marks > 0 for marks, _, _ in tab.run(DRAWN).values())


def test_plots_follow_the_width_of_the_window(tab: Page, ours: Path) -> None:
    tab.show(ours, 1200)
    tab.call("Emulation.setDeviceMetricsOverride", width=600, height=900, deviceScaleFactor=1, mobile=False)
    time.sleep(0.5)
    tab.settle()
    assert all(width <= 600 for _, width, _ in tab.run(DRAWN).values())


def test_dark_mode_switches_page_and_plots_while_open(tab: Page, ours: Path) -> None:
    def brightness(colour: str) -> float:
        parts = colour.partition("(")[2].strip(")").split(",")
        return sum(float(part) for part in parts[:3]) / 3

    tab.show(ours, scheme="light")
    light, light_ink = tab.run(COLOURS), tab.run(INK)
    tab.prefer("dark")
    tab.settle()
    dark, dark_ink = tab.run(COLOURS), tab.run(INK)
    assert len(light) == len(dark) == 1 + len(PLOTS)
    assert len(set(light)) == len(set(dark)) == 1, "page and plots have the same background"
    assert brightness(light[0]) > 200
    assert brightness(dark[0]) < 60
    assert max(map(brightness, light_ink)) < 110 < 150 < min(map(brightness, dark_ink))
    tab.show(ours, scheme="dark")
    assert tab.run(COLOURS) == dark
    assert tab.complaints() == []


def test_labels_that_look_like_markup_are_shown_as_they_are(tab: Page, ours: Path) -> None:
    tab.show(ours)
    assert tab.run("document.title").startswith(NASTY)
    labels = tab.run("[...document.querySelectorAll('#plot-transfer .ytick text')].map(t => t.textContent)")
    assert any(label.startswith("</script><scr") for label in labels)
    assert tab.run("document.querySelectorAll('img, svg a').length") == 0


def test_a_click_on_a_heading_sorts_and_cells_without_a_value_stay_last(tab: Page, ours: Path) -> None:
    tab.show(ours)
    click = "document.querySelectorAll('#trials th button')[2].click()"
    read = "[...document.querySelectorAll('#trials tbody tr')].map(row => row.cells[2].dataset.key ?? null)"
    for turn in (1, -1):
        tab.run(click)
        values = tab.run(read)
        assert values[-1] is None
        numbers = [turn * float(v) for v in values[:-1]]
        assert numbers == sorted(numbers)
        expected = "ascending" if turn == 1 else "descending"
        assert tab.run("document.querySelectorAll('#trials th')[2].getAttribute('aria-sort')") == expected


def test_the_toolbar_cannot_send_a_plot_anywhere(tab: Page, ours: Path) -> None:
    """With a mouse, which a headless browser has not: plots have a toolbar, and Plotly's own offers to share them."""
    mouse = "const real = matchMedia; window.matchMedia = q => real.call(window, q.includes('hover') ? 'not all' : q);"
    script = tab.call("Page.addScriptToEvaluateOnNewDocument", source=mouse)["identifier"]
    tab.show(ours)
    tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    titles = tab.run("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title.toLowerCase())")
    assert set(titles) == {"download plot as a png", "reset axes"}
    server = (
        "[...document.querySelectorAll('.plot')].map(p => [p._context.showSendToCloud, p._context.plotlyServerURL])"
    )
    assert tab.run(server) == [[False, ""]] * len(PLOTS)


def test_the_browser_refuses_to_load_anything(tab: Page, ours: Path) -> None:
    tab.show(ours)
    blocked = tab.run(
        """new Promise(done => {
          document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));
          setTimeout(() => done('nothing'), 3000);
          fetch('http://127.0.0.1:9/').catch(() => 0);
        })"""
    )
    assert blocked == "connect-src"


def wide_space() -> Space:
    kinds = (
        FloatDistribution(0, 1),
        CategoricalDistribution((NASTY, "b", None, True)),
        IntDistribution(1, 10**6, log=True),
    )
    return Space({f"{NASTY} {i}" if i == 0 else f"parameter_{i}": kinds[i % 3] for i in range(30)})


STUDIES: dict[str, tuple[Space, int, Callable[[int], float | None]]] = {
    "empty": (SPACE, 0, float),
    "one": (SPACE, 1, lambda i: 0.5),
    "failed": (SPACE, 5, lambda i: None),
    "constant": (SPACE, 12, lambda i: 0.25),
    "wide": (SPACE, 17, lambda i: 10.0 ** (i - 8)),
    "extreme": (SPACE, 4, lambda i: (-1.0) ** i * 1e308),
    "large": (wide_space(), 2000, lambda i: None if i % 50 == 0 else 1.0 / (i + 1)),
}


@pytest.mark.parametrize("name", STUDIES)
def test_any_study_is_drawn(tab: Page, tmp_path: Path, name: str) -> None:
    """Trials of another sampler: what they do not have is a gap."""
    space, n, value = STUDIES[name]
    points = [space.decode(u) for u in space.sample(np.random.default_rng(0), n)]
    trials = [finished(space, i, params, value(i), {}) for i, params in enumerate(points)]
    path = tmp_path / "report.html"
    report.write(path, report.page(name, space, "minimize", trials))
    tab.show(path, 375)
    assert tab.complaints() == []
    assert (tab.run("innerWidth"), tab.run(OVERFLOW)) == (375, 0)
    drawn = tab.run(DRAWN)
    assert all(marks > 0 for marks, _, _ in drawn.values()), drawn
    assert len(drawn) == (0 if name == "empty" else 2 if name == "failed" else 3)
    assert tab.run("window.broken") is None
