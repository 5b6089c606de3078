"""What was learned, in a folder: learned once, whatever happens to the folder or to the process that learns."""

import errno
import fcntl
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import cache
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import METHODS, RGPE, Jumbo, JumboJoint, OfflineDKL
from jumbo_bo.methods.task_gps import TaskGPs
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})
SMALL = JumboJoint(preset=Pretraining(members=1, max_epochs=2, n_u=8))


def runs(seed=0):
    u = np.random.default_rng(seed).random((30, 2))
    return History(SPACE, (Task("old", u, -((u - 0.3) ** 2).sum(axis=1)),))


@pytest.fixture
def lessons(monkeypatch):
    """One entry for each time something is learned."""
    learn, calls = JumboJoint.learn, []
    monkeypatch.setattr(JumboJoint, "learn", lambda *args: (calls.append(args), learn(*args))[1])
    return calls


def same(a, b):
    t = np.random.default_rng(1).random((5, 2))
    return np.array_equal(a.predictions(t), b.predictions(t))


def test_learned_once_and_read_afterwards(tmp_path, lessons):
    folder = tmp_path / "not" / "there" / "yet"
    first, second = (cache.learned(SMALL, runs(), 0, folder) for _ in range(2))
    assert len(lessons) == 1
    assert same(first, second)
    assert len(list(folder.glob("*.safetensors"))) == 1


def test_other_runs_options_or_seed_are_another_net(tmp_path, lessons):
    for history, method, seed in (
        (runs(), SMALL, 0),
        (runs(1), SMALL, 0),
        (runs(), JumboJoint(preset=Pretraining(members=1, max_epochs=3, n_u=8)), 0),
        (runs(), SMALL, 1),
    ):
        assert cache.kept(method, history, seed, tmp_path) is None
        cache.learned(method, history, seed, tmp_path)
    assert len(lessons) == 4
    assert cache.kept(SMALL, runs(), 0, tmp_path) is not None


def test_methods_that_learn_the_same_share_it(tmp_path, lessons):
    small = Pretraining(members=1, max_epochs=2, n_u=8)
    first = cache.learned(JumboJoint(preset=small, beta0=5.0), runs(), 0, tmp_path)
    for method in (SMALL, Jumbo(preset=small), OfflineDKL(preset=small)):
        found = cache.kept(method, runs(), 0, tmp_path)
        assert found is not None
        assert same(first, found)
    assert cache.kept(RGPE(rows=20, beta0=1.0), runs(), 0, tmp_path) is None
    cache.learned(RGPE(rows=20), runs(), 0, tmp_path)
    assert isinstance(cache.kept(METHODS["mf-gp-ucb"].__class__(rows=20), runs(), 0, tmp_path), TaskGPs)
    assert cache.kept(RGPE(rows=19), runs(), 0, tmp_path) is None


def test_without_a_folder_nothing_is_kept(tmp_path, lessons, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        cache.learned(SMALL, runs(), 0, None)
    assert len(lessons) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["cut", "other bytes", "empty"])
def test_a_damaged_file_is_learned_again_with_one_warning(tmp_path, lessons, damage):
    net = cache.learned(SMALL, runs(), 0, tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes({"cut": content[:100], "other bytes": b"x" * len(content), "empty": b""}[damage])
    with pytest.warns(UserWarning, match="learning from the old runs again") as warned:
        again = cache.learned(SMALL, runs(), 0, tmp_path)
    assert len(warned) == 1
    assert str(file) in str(warned[0].message)
    assert len(lessons) == 2
    assert same(net, again)
    assert file.read_bytes()[:8] == content[:8]
    cache.learned(SMALL, runs(), 0, tmp_path)  # repaired
    assert len(lessons) == 2


def test_a_folder_that_cannot_be_made_only_warns(tmp_path, lessons):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="could not be kept"):
        net = cache.learned(SMALL, runs(), 0, tmp_path / "file" / "nets")
    assert isinstance(net, FeatureNet)
    assert len(lessons) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_only_warns(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.warns(UserWarning, match="could not be kept"):
        cache.learned(SMALL, runs(), 0, tmp_path)


def test_a_full_disk_only_warns_and_leaves_no_half_file(tmp_path, monkeypatch):
    def full(path, content):
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        net = cache.learned(SMALL, runs(), 0, tmp_path)
    assert isinstance(net, FeatureNet)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_threads_that_start_at_once_learn_once(tmp_path, lessons):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.learned(SMALL, runs(), 0, tmp_path))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 3
    assert len(lessons) == 1


def test_a_killed_learner_keeps_nobody_waiting(tmp_path, lessons):
    code = """
        import sys, time
        from pathlib import Path
        from jumbo_bo.learning import cache
        from jumbo_bo.methods import JumboJoint
        from test_cache import SMALL, runs

        JumboJoint.learn = lambda *args: (print("learning", flush=True), time.sleep(600))
        cache.learned(SMALL, runs(), 0, Path(sys.argv[1]))
    """
    learner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert learner.stdout.readline() == "learning\n"
        (lock,) = tmp_path.glob("*.lock")
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        waiting = threading.Thread(target=lambda: cache.learned(SMALL, runs(), 0, tmp_path), daemon=True)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert not lessons
    finally:
        learner.kill()
        learner.communicate()
    waiting.join(60)
    assert not waiting.is_alive()
    assert len(lessons) == 1


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path))
    assert cache.default_folder() == tmp_path
    monkeypatch.delenv("JUMBO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / "jumbo-bo"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.default_folder() == Path.home() / ".cache" / "jumbo-bo"
