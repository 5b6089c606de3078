"""The frozen net: its forward pass, its blocks, and a file that is either right or refused."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError
from jumbo_bo.learning import features, past_file
from jumbo_bo.learning.features import FeatureNet, latent, side_by_side
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": CategoricalDistribution(["x", "y"])})

REFERENCE = np.random.default_rng(7).random((50, 4))
SINGLE = 1e-5  # blocks are computed in single precision; before they are divided by standard deviations of about 0.01


def make_layers(n_tasks=2, seed=0, n_l=2):
    rng = np.random.default_rng(seed)
    sizes = (4, *[6] * n_l, 3, n_tasks)
    return tuple((rng.normal(size=(i, o)), rng.normal(size=o)) for i, o in pairwise(sizes))


def make_net(n_tasks=2, seed=0, layers=None, **rest):
    layers = make_layers(n_tasks, seed) if layers is None else layers
    rest = {"theta": {"warm": np.array([0.1, 1 / 3, -2.0])}, "info": {"validation_loss": 1 / 3}} | rest
    return FeatureNet.standardised(
        layers,
        reference=REFERENCE,
        tasks=tuple(f"task {k}" for k in range(n_tasks)),
        warps=tuple(Warp(-1, k + 1 / 3, 1 / 7) for k in range(n_tasks)),
        space_fingerprint=SPACE.fingerprint,
        **rest,
    )


def test_forward_pass_is_the_papers_architecture():
    net = make_net()
    t = np.random.default_rng(1).random((7, 4))
    x = 2 * t - 1
    for weight, bias in net.layers[:-1]:
        x = np.tanh(x @ weight + bias)
    np.testing.assert_allclose(net.features(t), x, rtol=1e-14)
    np.testing.assert_allclose(net.predictions(t), x @ net.layers[-1][0] + net.layers[-1][1], rtol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("n_l", [1, 3])
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_side_by_side_features_are_joined_and_predictions_averaged(count, n_l, n_tasks):
    members = [make_layers(n_tasks, seed, n_l) for seed in range(count)]
    net = replace(make_net(n_tasks, layers=side_by_side(members)), members=count)
    t = np.random.default_rng(1).random((7, 4))
    h = [latent(layers, t) for layers in members]
    each = np.array([own @ layers[-1][0] + layers[-1][1] for own, layers in zip(h, members, strict=True)])
    np.testing.assert_allclose(net.features(t), np.hstack(h), rtol=0, atol=1e-14)
    np.testing.assert_allclose(net.predictions(t), each.mean(axis=0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(net.blocks(t)["m"][:, 0], each.mean(axis=(0, 2)), rtol=0, atol=SINGLE)
    # The blocks take a quicker path, member by member.
    blocks = net.blocks(t)
    np.testing.assert_allclose(blocks["h"] * net.h_sd + net.h_mean, net.features(t), rtol=0, atol=SINGLE)
    np.testing.assert_allclose(blocks["g"] * net.g_sd + net.g_mean, net.predictions(t), rtol=0, atol=SINGLE)
    assert net.n_z == count * 3
    assert len(net.layers) == n_l + 2


def test_one_net_side_by_side_is_itself():
    layers = make_layers()
    for (weight, bias), (ours, own) in zip(side_by_side([layers]), layers, strict=True):
        assert weight.tobytes() == ours.tobytes()
        assert bias.tobytes() == own.tobytes()


def test_chunks_do_not_change_the_result(monkeypatch):
    net, t = make_net(), np.random.default_rng(1).random((25, 4))
    whole = net.blocks(t)
    monkeypatch.setattr(features, "CHUNK", 10)
    for name, block in net.blocks(t).items():
        np.testing.assert_allclose(block, whole[name], rtol=0, atol=SINGLE)
    assert net.features(t[:0]).shape == (0, 3)


def test_blocks_are_standardised_over_the_reference_rows():
    net = make_net()
    blocks = net.blocks(REFERENCE)
    for block in (blocks["h"], blocks["g"]):
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=10 * SINGLE)
        np.testing.assert_allclose(block.std(axis=0), 1, atol=1e-4)
    np.testing.assert_allclose(blocks["m"][:, 0], net.predictions(REFERENCE).mean(axis=1), rtol=0, atol=SINGLE)


def test_constant_features_stay_small():
    net = make_net()
    flat = FeatureNet.standardised(
        tuple((w * 0, b) for w, b in net.layers), np.zeros((1, 4)), tasks=net.tasks, warps=net.warps,
        space_fingerprint=net.space_fingerprint,
    )  # fmt: skip
    blocks = flat.blocks(np.random.default_rng(0).random((5, 4)))
    assert max(np.abs(blocks["h"]).max(), np.abs(blocks["g"]).max()) < 1e-4


def test_many_tasks_become_eight_principal_components():
    net = make_net(n_tasks=11)
    t = np.random.default_rng(1).random((40, 4))
    assert net.predictions(t).shape == (40, 11)
    g = net.blocks(t)["g"]
    assert g.shape == (40, 8)
    np.testing.assert_allclose(net.g_basis.T @ net.g_basis, np.eye(8), atol=1e-12)
    assert (net.g_basis.sum(axis=0) >= 0).all()
    # Three latent features: three components carry all there is.
    p = net.predictions(t)
    back = (g * net.g_sd + net.g_mean)[:, :3] @ net.g_basis[:, :3].T
    np.testing.assert_allclose(back - back.mean(0), p - p.mean(0), atol=SINGLE)


def test_a_net_cannot_be_changed_or_built_wrong():
    net = make_net()
    with pytest.raises(ValueError, match="read-only"):
        net.layers[0][0][0, 0] = 1.0
    with pytest.raises(ValueError, match=r"layer 3 has shape \(3, 2\), expected \(3, 3\)"):
        FeatureNet.standardised(
            net.layers, np.zeros((1, 4)), tasks=("a", "b", "c"), warps=net.warps, space_fingerprint=""
        )
    with pytest.raises(ValueError, match="cannot hold 4 nets"):
        replace(net, members=4)
    with pytest.raises(ValueError, match="1 warps for 2 tasks"):
        FeatureNet.standardised(
            net.layers, np.zeros((1, 4)), tasks=net.tasks, warps=net.warps[:1], space_fingerprint=""
        )


def test_round_trip_is_bit_exact(tmp_path):
    net, path = make_net(n_tasks=9, members=3), tmp_path / "net.safetensors"
    net.save(path)
    back = FeatureNet.load(path, SPACE)
    before, after = past_file.tensors(net), past_file.tensors(back)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name].tobytes() == after[name].tobytes()
    assert (back.tasks, back.warps, back.info, back.members) == (net.tasks, net.warps, net.info, net.members)
    t = np.random.default_rng(0).random((9, 4))
    assert net.blocks(t)["g"].tobytes() == back.blocks(t)["g"].tobytes()


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "net.safetensors"
    make_net(seed=1).save(path)
    old = path.read_bytes()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(OSError, match="disk full"):
        make_net(seed=2).save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def damaged(path, tensors=None, header=None, fields=None):
    make_net().save(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        meta = json.loads(file.metadata()["jumbo_bo"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    meta |= header or {}
    meta["fields"] |= fields or {}
    arrays |= tensors or {}
    safetensors.numpy.save_file(
        {k: v for k, v in arrays.items() if v is not None}, path, metadata={"jumbo_bo": json.dumps(meta)}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": {"format": 99}}, "has format 99.*learn from the old runs again"),
        ({"header": {"kind": "TaskGPs"}}, "holds a TaskGPs, not a FeatureNet"),
        ({"header": {"space": "other"}}, "another space than .*learn from the old runs again"),
        ({"fields": {"space_fingerprint": "other"}}, "damaged.*different spaces"),
        ({"fields": {"tasks": ["only one"]}}, "damaged.*shape"),
        ({"fields": {"warps": [{"sign": 1}]}}, "damaged.* is missing"),
        ({"fields": {"layers": 3}}, "damaged"),
        ({"tensors": {"layers.0.1": np.zeros(5)}}, r"damaged.*layers.0.1 is float64 \[5\], not float64 \[6\]"),
        ({"tensors": {"layers.1.0": np.full((6, 6), np.nan)}}, "damaged.*layer 1 has a value"),
        ({"tensors": {"h_sd": np.zeros(3)}}, "damaged.*not positive"),
        ({"tensors": {"h_sd": None}}, "damaged.*h_sd.* is missing"),
        ({"tensors": {"h_sd": np.ones(3, np.float32)}}, r"damaged.*h_sd is float32 \[3\], not float64"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_a_fix(tmp_path, change, message):
    path = tmp_path / "net.safetensors"
    damaged(path, **change)
    with pytest.raises(ValueError, match=message) as error:
        FeatureNet.load(path, SPACE)
    assert str(path) in str(error.value)


def test_files_that_are_no_nets_are_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(ValueError, match="is not a file"):
        FeatureNet.load(path, SPACE)
    path.write_bytes(b"not a net")
    fix = r"give a file written by save\(\), or learn from the old runs again$"
    with pytest.raises(
        ValueError, match=rf"net\.safetensors was not written by jumbo-bo.*\(SafetensorError: .*\); {fix}"
    ):
        FeatureNet.load(path, SPACE)
    make_net().save(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cut off"):
        FeatureNet.load(path, SPACE)
    safetensors.numpy.save_file({"a": np.zeros(2)}, path)
    with pytest.raises(ValueError, match="learn from the old runs again"):
        FeatureNet.load(path, SPACE)
    safetensors.numpy.save_file({"a": np.zeros(2)}, path, metadata={"jumbo_bo": "[1]"})
    with pytest.raises(ValueError, match="no readable header"):
        FeatureNet.load(path, SPACE)


def test_using_a_net_never_imports_jax(tmp_path):
    path = tmp_path / "net.safetensors"
    make_net().save(path)
    code = (
        "import sys, numpy as np\n"
        "from optuna.distributions import CategoricalDistribution, FloatDistribution\n"
        "from jumbo_bo.space.space import Space\n"
        "from jumbo_bo.learning.features import FeatureNet\n"
        "space = Space({'a': FloatDistribution(0, 1), 'b': FloatDistribution(0, 1),"
        " 'c': CategoricalDistribution(['x', 'y'])})\n"
        f"FeatureNet.load({str(path)!r}, space).blocks(np.zeros((2, 4)))\n"
        "print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("n_tasks", [70, 200])
def test_directions_found_in_h_are_those_of_the_heads(n_tasks, monkeypatch):
    one_by_one = make_net(n_tasks)
    monkeypatch.setattr(features, "MANY", 20)
    t = np.random.default_rng(1).random((30, 4))
    few, all_of_them = make_net(n_tasks).blocks(t), one_by_one.blocks(t)
    np.testing.assert_allclose(few["h"], all_of_them["h"])
    np.testing.assert_allclose(few["m"], all_of_them["m"], atol=SINGLE)
    np.testing.assert_allclose(few["g"], all_of_them["g"][:, :3], atol=1e-3)  # h has three directions
    np.testing.assert_allclose(all_of_them["g"][:, 3:], 0, atol=1e-2)
    assert few["dev"].shape == (30, 4)
    np.testing.assert_allclose(few["dev"] @ few["dev"].T, all_of_them["dev"] @ all_of_them["dev"].T, atol=SINGLE)


def test_a_file_with_heads_in_other_directions_is_refused():
    net = make_net(501)
    with pytest.raises(InputError, match=r"dev_basis has shape \(501, 3\), expected \(501, 4\)"):
        replace(net, dev_basis=net.dev_basis[:, :3])
