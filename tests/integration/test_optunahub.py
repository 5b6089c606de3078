"""The package in optunahub/ as OptunaHub loads it, and as its registry wants it."""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

import jumbo_bo

optunahub = pytest.importorskip("optunahub", reason="needs the PyPI package optunahub (make test-integration)")
pytestmark = pytest.mark.integration

REPO = Path(__file__).resolve().parents[2]
REGISTRY = REPO / "optunahub" / "package"
PACKAGE = REGISTRY / "samplers" / "jumbo"


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What users load from the registry, from this repository."""
    load = optunahub.load_local_module
    monkeypatch.setattr(optunahub, "load_module", lambda package: load(package, registry_root=str(REGISTRY)))
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))


def front_matter() -> Mapping[str, Any]:
    (text,) = re.findall(r"\A---\n(.*?)\n---\n", (PACKAGE / "README.md").read_text(), re.DOTALL)
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def test_the_sampler_is_loaded() -> None:
    module = optunahub.load_local_module("samplers/jumbo", registry_root=str(REGISTRY))
    assert module.__all__ == ["JumboSampler"]
    assert module.JumboSampler is jumbo_bo.JumboSampler


def test_the_example(local: None, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert "Old runs rate this" in capsys.readouterr().out


def test_the_example_of_the_page(local: None, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text(code)
    names = runpy.run_path(str(tmp_path / "example.py"))
    assert len(names["study"].trials) == 8
    assert all("why" in trial.user_attrs for trial in names["study"].trials)


def test_the_page_is_as_the_registry_wants_it() -> None:
    about = front_matter()
    assert list(about) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "sampler" in about["tags"]
    assert all(isinstance(tag, str) for tag in about["tags"])
    assert optuna.__version__.split(".")[0] in {str(version).split(".")[0] for version in about["optuna_versions"]}
    headings = re.findall(r"^## (.*)$", (PACKAGE / "README.md").read_text(), re.MULTILINE)
    assert headings == ["Class or Function Names", "Installation", "APIs", "Example", "Others"]
    assert (PACKAGE / "LICENSE").read_text() == (REPO / "LICENSE").read_text()
    assert (PACKAGE / "requirements.txt").read_text().split() == ["jumbo-bo"]
