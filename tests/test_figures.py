"""The README and the page 'how it works': figures show what is said of them, and the code that is named exists."""

from __future__ import annotations

import importlib.util
import math
import pkgutil
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jumbo_bo

pytest.importorskip("matplotlib")

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCRIPT = DOCS / "figures" / "dynamics.py"


def loaded(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def dynamics() -> ModuleType:
    return loaded(SCRIPT)


def test_what_old_runs_are_worth_in_the_picture_of_the_readme() -> None:
    worth = loaded(DOCS / "figures" / "worth.py")
    found = worth.lines()
    ours, cold, blind = (found[method][:, 0] for method in ("jumbo-mixture", "gp-ucb", "random"))
    assert worth.later(found) > 3 * worth.EARLY  # as many trials without old runs
    assert (ours < cold).all()
    assert (cold[9:] < blind[9:]).all()


@pytest.fixture(scope="module")
def net(dynamics: ModuleType) -> Any:
    return dynamics.learn(0)


@pytest.fixture(scope="module")
def data(dynamics: ModuleType, net: Any) -> Any:
    return dynamics.next_round(net, dynamics.OBSERVED)


def test_compute_is_deterministic(dynamics: ModuleType, data: Any) -> None:
    again = dynamics.compute()  # trains the net a second time
    for field in fields(data):
        np.testing.assert_array_equal(getattr(data, field.name), getattr(again, field.name), err_msg=field.name)


def test_tasks_are_related_but_have_other_optima(data: Any) -> None:
    assert data.correlations["auxiliary"] > 0.8
    assert abs(data.x[data.f.argmax()] - data.x[data.f1.argmax()]) > 0.5


def test_only_the_warm_gp_has_learned_the_period(data: Any) -> None:
    assert data.correlations["warm"] > 0.75
    assert data.correlations["warm"] > data.correlations["cold"] + 0.2


def test_posteriors_pass_through_the_trials(data: Any) -> None:
    for mean in (data.warm_mean, data.cold_mean):
        np.testing.assert_allclose(np.interp(data.observed_x, data.x, mean), data.observed_z, atol=0.3)


def test_the_effect_does_not_hang_on_the_six_trials(dynamics: ModuleType, net: Any) -> None:
    places = np.random.default_rng(1).random((20, 6, 1))
    better = [r["warm"] > r["cold"] for r in (dynamics.next_round(net, u).correlations for u in places)]
    assert sum(better) >= 16


def test_star_is_the_best_of_the_gated_acquisition(dynamics: ModuleType, data: Any) -> None:
    weight = math.sqrt(10 * math.exp(-dynamics.ROUND / dynamics.BUDGET))
    warm = data.warm_mean + weight * data.warm_sd
    cold = data.cold_mean + weight * data.cold_sd
    inside = warm.max() - warm <= dynamics.THRESHOLD
    expected = inside * cold + (1 - inside) * warm
    np.testing.assert_array_equal(data.gate, inside)
    np.testing.assert_allclose(data.acquisition, expected, rtol=1e-12)
    assert data.star == np.argmax(expected)
    assert 0 < inside.sum() < len(inside) / 3  # the gate rules most of the line out


def test_draw_writes_a_small_png(dynamics: ModuleType, data: Any, tmp_path: Path) -> None:
    dynamics.draw(data, tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(content[16:20], "big") == 900  # width
    assert len(content) < 200_000


def test_names_on_the_page_exist() -> None:
    modules = {m.name.removeprefix("jumbo_bo.") for m in pkgutil.walk_packages(jumbo_bo.__path__, "jumbo_bo.")}
    names = set(re.findall(r"`([a-z_]+(?:\.\w+)+)", (DOCS / "how-it-works.md").read_text()))
    found = 0
    for name in sorted(names):
        if name in modules:
            continue
        parts = name.split(".")
        module = next((m for i in range(len(parts) - 1, 0, -1) if (m := ".".join(parts[:i])) in modules), None)
        if module is None:
            continue  # a variable of an example
        thing: Any = importlib.import_module(f"jumbo_bo.{module}")
        for attribute in name.removeprefix(f"{module}.").split("."):
            known = hasattr(thing, attribute) or attribute in getattr(thing, "__dataclass_fields__", {})
            assert known, f"how-it-works.md names {name}, which does not exist"
            thing = getattr(thing, attribute, None)
        found += 1
    assert found > 50
