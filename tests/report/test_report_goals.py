"""The page of a study with several goals: its front, its progress, and what is known of each goal."""

from __future__ import annotations

import numpy as np
from report_pages import SPACE, Reader, marks, plots, sections, trial

from jumbo_bo.data.goals import Goal, as_one
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report import page
from jumbo_bo.studies import follow

GOALS = (Goal("loss"), Goal("speed", "maximize"))
VALUES = [(3.0, 5.0), (2.0, 4.0), None, (1.0, 2.0), (2.5, 3.0), (0.5, 1.0), (0.6, 4.5)]


def several():
    made = []
    for number, values in enumerate(VALUES):
        one = trial(number, None if values is None else 0.0)
        if values is not None:
            one.values = list(values)
        made.append(as_one(one, ["loss", "speed"]))
    return made


def test_the_front_is_drawn_and_listed():
    html = page("w", SPACE, "minimize", several(), goals=GOALS)
    front = marks(html, "front")
    assert sorted(zip(front["on the front"]["x"], front["on the front"]["y"], strict=True)) == [
        (0.5, 1.0),
        (0.6, 4.5),
        (3.0, 5.0),
    ]
    assert front["on the front"]["text"] == ["5", "6", "0"]
    assert sorted(front["front of the first half"]["x"]) == [1.0, 2.0, 3.0]
    words = Reader(sections(html)["summary"]).words
    assert "3 trials on the front: no other one beats them in all goals." in words
    assert "1 failed" in words
    assert "Looking for the front of low loss, high speed" in html
    share = plots(html)["plot-volume"]["data"][0]["y"]
    assert np.all(np.diff(share) >= 0)
    assert share[-1] == 1


def test_each_goal_has_its_own_sections():
    optimizer = follow(Optimizer(SPACE, direction={g.name: g.direction for g in GOALS}), several())
    html = page("w", SPACE, "minimize", several(), optimizer, goals=GOALS)
    for k in range(2):
        for name in ("importance", "slices", "transfer", "trust", "calibration"):
            assert html.count(f'<section id="{name}-of-{k}"') == 1
    assert "speed: what matters" in html


def test_three_goals_have_a_plot_for_every_two_and_none_is_needed():
    goals = (*GOALS, Goal("price"))
    rows = several()
    for i, row in enumerate(rows):
        if row.value is not None:
            row._user_attrs = {**row.user_attrs, "measured": {**row.user_attrs["measured"], "price": float(i)}}
    assert {f"plot-front-{k}" for k in range(3)} <= set(plots(page("w", SPACE, "minimize", rows, goals=goals)))
    assert "No trial has a value of every goal yet." in page("w", SPACE, "minimize", [], goals=goals)
