"""`~` is the home directory at every entrance for a path."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from typer.testing import CliRunner

from jumbo_bo import FeatureNet, JumboSampler, Optimizer, Space, read_history
from jumbo_bo.bench.fcnet import authors_data
from jumbo_bo.cli import app
from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_storage
from jumbo_bo.data.storage import opened
from jumbo_bo.data.trackers import from_ray, from_wandb
from jumbo_bo.learning import cache
from jumbo_bo.paths import at_home, whole
from jumbo_bo.report import write
from jumbo_bo.study.study_file import load
from jumbo_bo.study.table import read_table

SPACE = Space({"x": FloatDistribution(0, 1)})
STUDY = """
name = "s"
storage = "sqlite:///~/s.db"
[space]
x = {type = "float", low = 0, high = 1}
[[history]]
files = "~/runs.csv"
[[history]]
optuna = "sqlite:///~/s.db"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with old runs in it, and a current folder that stays empty."""
    folder, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(elsewhere)
    (folder / "runs.csv").write_text("x,value\n" + "".join(f"{i / 20},{(i - 7) ** 2}\n" for i in range(20)))
    yield folder
    assert not list(elsewhere.iterdir())


def with_a_study(home: Path) -> None:
    study = optuna.create_study(study_name="old", storage=f"sqlite:///{home}/s.db")
    study.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=SPACE.distributions, value=1.0))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/a", "HOME/a"),
        ("~", "HOME"),
        ("a/~/b", "a/~/b"),
        ("/a", "/a"),
        ("sqlite:///~/a.db", "sqlite:///HOME/a.db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql://me@host/~", "postgresql://me@host/~"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
    ],
)
def test_what_is_meant(home: Path, written: str, meant: str) -> None:
    assert at_home(written) == meant.replace("HOME", str(home))


def test_caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Optimizer(SPACE, cache="~/x").cache == home / "x"
    monkeypatch.setenv("JUMBO_CACHE", "~/own")
    assert cache.default_folder() == home / "own"
    monkeypatch.delenv("JUMBO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/all")
    assert cache.default_folder() == home / "all" / "jumbo-bo"


def test_the_cache_of_a_sampler_and_files_of_a_net(home: Path) -> None:
    history = read_history("~/runs.csv", SPACE)
    study = optuna.create_study(sampler=JumboSampler(history, seed=0, cache="~/nets"))
    study.ask(SPACE.distributions)
    (kept,) = (home / "nets").glob("*.safetensors")
    FeatureNet.load(f"~/nets/{kept.name}", SPACE).save("~/net.safetensors")
    assert (home / "net.safetensors").stat().st_size == kept.stat().st_size


def test_old_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_history("~/*.csv", SPACE).n_rows == read_table("~/runs.csv").rows == 20
    (home / "wandb.json").write_text(json.dumps([{"state": "finished", "config": {"x": 0.5}, "summary": {"value": 1}}]))
    assert from_wandb("~/wandb.json", SPACE).n_rows == 1
    trial = home / "ray" / "trial"
    trial.mkdir(parents=True)
    (trial / "params.json").write_text('{"x": 0.5}')
    (trial / "result.json").write_text('{"value": 1, "done": true}\n')
    assert from_ray("~/ray", SPACE).n_rows == 1
    with_a_study(home)
    assert from_storage("sqlite:///~/s.db", SPACE).n_rows == 1
    (home / "naval_e3.csv").touch()
    monkeypatch.setenv("JUMBO_DATA", "~")
    assert authors_data(None) == authors_data(Path("~")) == home


@pytest.mark.parametrize("name", ["s.db", "s.journal"])
def test_storages(home: Path, name: str) -> None:
    with opened(f"sqlite:///~/{name}" if name == "s.db" else f"~/{name}") as storage:
        optuna.create_study(storage=storage)
    assert (home / name).exists()


def test_study_files(home: Path) -> None:
    (home / "study.toml").write_text(STUDY)
    with_a_study(home)
    study = load("~/study.toml")
    assert study.path == home / "study.toml"
    assert study.address == f"sqlite:///{home}/s.db"
    history = study.history()
    assert isinstance(history, History)
    assert history.n_rows == 21


def test_options_of_commands(home: Path) -> None:
    def jumbo(*words: str) -> None:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output

    jumbo("init", "~/runs.csv", "--output=~/study.toml")
    assert load("~/study.toml").old_runs[0].where == ("runs.csv",)
    jumbo("import", "~/runs.csv", "--space-from=~/study.toml")
    jumbo("ask", "~/study.toml")
    jumbo("report", "~/study.toml", "--without-old-runs", "--output=~/page.html")
    assert (home / "page.html").exists()
    jumbo("bench", "synthetic", "--problems=branin", "--methods=random", "--seeds=1", "--trials=1", "--out=~/runs")
    assert (home / "runs/synthetic").is_dir()
    write("~/again.html", "")
    assert (home / "again.html").exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fails() -> None:
        with whole(path) as part:
            part.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fails()
    assert path.read_text() == "old"
    with whole(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
