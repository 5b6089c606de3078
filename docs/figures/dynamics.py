"""One round of JUMBO on a line: the paper's Figure 'Dynamics of JUMBO', made with the parts of this package.

Notation
    x       (m, 1)  the line [0, 1], on a dense grid; also u and T(u), because the space is one plain float
    f, f1   (m,)    the target and the auxiliary task: the same period, opposite trends, so different optima
    z       (m,)    standardised values; both GPs and both UCBs are in these units
    gate    (m,)    lambda_t(x) = 1 (Algorithm 1, line 6)

    python docs/figures/dynamics.py [--out PATH]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from optuna.distributions import FloatDistribution
from PIL import Image

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.warp import fit_warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.models.gp import Blocks, Kernel, LogNormal, fit, isotropic, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import gated, in_gate, paper_beta, ucb
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

SPACE = Space({"x": FloatDistribution(0, 1)})
GRID = np.linspace(0, 1, 1001)[:, None]
OBSERVED = np.array([0.05, 0.18, 0.34, 0.61, 0.75, 0.93])[:, None]  # six points, too few to see four periods
OLD_ROWS = 1000
THRESHOLD = 0.3  # l_alpha; wider than the paper's 0.1, so that the gate can be seen
ROUND, BUDGET = 7, 50  # six trials are finished
# A wiggly line is hard for a small tanh net: some starts get stuck. The old runs alone tell which ones did not.
NET = Pretraining(members=1, n_u=64, n_z=2, learning_rate=3e-3, weight_decay=0.0, max_epochs=500, patience=500)
STARTS = 4

TARGET, AUXILIARY, WARM, COLD, GATE = "#000000", "#7F7F7F", "#D55E00", "#0072B2", "#009E73"  # Okabe and Ito's


@dataclass(frozen=True, eq=False)
class Dynamics:
    x: Array  # (m,)
    f: Array  # (m,)
    f1: Array  # (m,)
    f_z: Array  # (m,) f in standardised units
    observed_x: Array  # (n,)
    observed_z: Array  # (n,)
    warm_mean: Array  # (m,)
    warm_sd: Array  # (m,)
    cold_mean: Array  # (m,)
    cold_sd: Array  # (m,)
    warm_ucb: Array  # (m,)
    cold_ucb: Array  # (m,)
    gate: npt.NDArray[np.bool_]  # (m,)
    acquisition: Array  # (m,)
    star: int  # index of the next query in x

    @property
    def correlations(self) -> dict[str, float]:
        """Of f with what is known of it before a single trial (f1) and after six (the posterior means)."""
        known = {"auxiliary": self.f1, "warm": self.warm_mean, "cold": self.cold_mean}
        return {name: float(np.corrcoef(values, self.f)[0, 1]) for name, values in known.items()}


def target(x: Array) -> Array:
    return np.sin(8 * np.pi * x) + 0.6 * (x - 0.5)


def auxiliary(x: Array) -> Array:
    return np.sin(8 * np.pi * x) - 0.6 * (x - 0.5)


def compute(seed: int = 0) -> Dynamics:
    return next_round(learn(seed), OBSERVED)


def learn(seed: int) -> FeatureNet:
    """The net that explains held-out old rows best."""
    u = np.random.default_rng(seed).random((OLD_ROWS, 1))
    history = History(SPACE, (Task("auxiliary", u, auxiliary(u[:, 0])),), direction="maximize")
    nets = [pretrain(history, NET, seed=STARTS * seed + i) for i in range(STARTS)]
    return min(nets, key=lambda net: float(net.info["members"][0]["validation_loss"]))


def next_round(net: FeatureNet, observed: Array) -> Dynamics:  # observed (n, 1)
    """Algorithm 1, lines 5 to 8, after these trials."""

    def featurise(u: Array) -> Blocks:
        x = SPACE.transform(u)
        return {"x": x, **net.blocks(x)}

    f = target(GRID[:, 0])
    y = target(observed[:, 0])
    warp = fit_warp(y)
    trials, grid, z = featurise(observed), featurise(GRID), warp(y)
    warm_kernel = Kernel((isotropic("h", net.n_z, length=LogNormal(math.sqrt(net.n_z), 1.0)),))
    warm, cold = fit(warm_kernel, trials, z), fit(cold_kernel(SPACE), trials, z)
    warm_posterior, cold_posterior = posterior(warm, grid), posterior(cold, grid)

    beta = paper_beta()(ROUND, BUDGET)
    warm_score, cold_score = ucb(warm.predict, beta), ucb(cold.predict, beta)
    warm_ucb = warm_score(grid)
    best = float(warm_ucb.max())  # line 5
    acquisition = gated(warm_score, cold_score, best, THRESHOLD)(grid)  # lines 6 and 7
    return Dynamics(
        x=GRID[:, 0],
        f=f,
        f1=auxiliary(GRID[:, 0]),
        f_z=warp(f),
        observed_x=observed[:, 0],
        observed_z=z,
        warm_mean=warm_posterior.mean,
        warm_sd=warm_posterior.sd,
        cold_mean=cold_posterior.mean,
        cold_sd=cold_posterior.sd,
        warm_ucb=warm_ucb,
        cold_ucb=cold_score(grid),
        gate=in_gate(warm_ucb, best, THRESHOLD),
        acquisition=acquisition,
        star=int(np.argmax(acquisition)),  # line 8
    )


def draw(data: Dynamics, path: Path) -> None:
    figure = Figure(figsize=(9, 10.5), dpi=100, layout="constrained")
    axes = figure.subplot_mosaic(
        [["a", "b"], ["c1", "c2"], ["c3", "c4"], ["c5", "c5"]], height_ratios=[1, 1.1, 1.1, 1.25]
    )
    _functions(axes["a"], data)
    _scatter(axes["b"], data)
    r = data.correlations
    title = "{} after 6 trials: correlation with f {:.2f}"
    _posterior(axes["c1"], data, data.warm_mean, data.warm_sd, WARM, "(c1) " + title.format("warm-GP", r["warm"]))
    _posterior(axes["c2"], data, data.cold_mean, data.cold_sd, COLD, "(c2) " + title.format("cold-GP", r["cold"]))
    _ucb(axes["c3"], data, data.warm_ucb, WARM, "(c3) warm UCB: the gate (green) is around its best (triangle)")
    _ucb(axes["c4"], data, data.cold_ucb, COLD, "(c4) cold UCB: alone it would look where it knows nothing")
    _gated(axes["c5"], data)
    for name in ("c1", "c2"):
        axes[name].set_ylim(-2.7, 3.1)
    for name in ("c3", "c4"):
        axes[name].set_ylim(-1.7, 3.7)
    for name, ax in axes.items():
        ax.spines[["top", "right"]].set_visible(False)
        if name != "b":
            ax.set_xlim(0, 1)
    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    # A palette is a third of the size, and no version of matplotlib is written into the file.
    Image.open(drawn).convert("RGB").quantize(128).save(path, format="png", optimize=True)


def _functions(ax: Any, data: Dynamics) -> None:
    for values, colour, style, name in (
        (data.f, TARGET, "-", "target f: six trials so far"),
        (data.f1, AUXILIARY, "--", f"auxiliary task f1: {OLD_ROWS:,} old runs"),
    ):
        ax.plot(data.x, values, style, color=colour, lw=1.8, label=name)
        ax.plot(data.x[values.argmax()], values.max(), "v", color=colour, ms=8)
    ax.set_ylim(-1.5, 2.4)
    ax.legend(frameon=False, fontsize=8.5, loc="upper center", ncols=1)
    _title(ax, "(a) The same period, different optima (triangles)")


def _scatter(ax: Any, data: Dynamics) -> None:
    ax.scatter(data.f1[::5], data.f[::5], s=9, color=AUXILIARY)
    ax.set_xlabel("f1", labelpad=1)
    ax.set_ylabel("f", labelpad=1)
    _title(ax, f"(b) The tasks are related: correlation {data.correlations['auxiliary']:.2f}")


def _posterior(ax: Any, data: Dynamics, mean: Array, sd: Array, colour: str, title: str) -> None:
    ax.fill_between(data.x, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.2, lw=0, label="± 2 sd")
    ax.plot(data.x, data.f_z, "--", color=TARGET, lw=1.2, label="f")
    ax.plot(data.x, mean, color=colour, lw=2, label="posterior mean")
    ax.plot(data.observed_x, data.observed_z, "o", color=TARGET, ms=6, label="trials")
    ax.legend(frameon=False, fontsize=8, ncols=4, loc="upper center", columnspacing=1, handlelength=1.4)
    _title(ax, title)


def _ucb(ax: Any, data: Dynamics, values: Array, colour: str, title: str) -> None:
    _shade_gate(ax, data)
    ax.plot(data.x, values, color=colour, lw=2)
    ax.plot(data.x[values.argmax()], values.max(), "v", color=colour, ms=8)
    _title(ax, title)


def _gated(ax: Any, data: Dynamics) -> None:
    _shade_gate(ax, data, label=f"gate: warm UCB within {THRESHOLD:g} of its best")
    inside = np.where(data.gate, data.acquisition, np.nan)
    outside = np.where(data.gate, np.nan, data.acquisition)
    ax.plot(data.x, outside, color=WARM, lw=2, label="outside the gate: warm UCB")
    ax.plot(data.x, inside, color=COLD, lw=2.5, label="inside the gate: cold UCB")
    ax.plot(data.x[data.star], data.acquisition[data.star], "*", color=TARGET, ms=16, label="next query")
    ax.axvline(data.x[data.f.argmax()], color=TARGET, ls=":", lw=1.2, label="best of f (not known to JUMBO)")
    low, high = data.acquisition.min(), data.acquisition.max()
    ax.set_ylim(low - 0.1, high + 0.3 * (high - low))
    ax.set_xlabel("x", labelpad=1)
    ax.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")
    _title(ax, "(c5) JUMBO's acquisition: the warm-GP says where to look, the cold-GP chooses there")


def _shade_gate(ax: Any, data: Dynamics, label: str | None = None) -> None:
    edges = np.flatnonzero(np.diff(np.r_[0, data.gate.astype(int), 0]))
    for start, stop in edges.reshape(-1, 2):
        ax.axvspan(data.x[start], data.x[stop - 1], color=GATE, alpha=0.25, lw=0, label=label)
        label = None  # one entry in the legend


def _title(ax: Any, text: str) -> None:
    ax.set_title(text, fontsize=9.5, loc="left")
    ax.tick_params(labelsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the paper's Figure 'Dynamics of JUMBO'.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    out: Path = parser.parse_args().out
    net = learn(0)
    data = next_round(net, OBSERVED)
    draw(data, out)
    for name, value in data.correlations.items():
        print(f"correlation of f with {name:<9} {value:+.2f}")
    where = "inside" if data.gate[data.star] else "outside"
    print(f"next query {data.x[data.star]:.3f}, {where} the gate; best of f {data.x[data.f.argmax()]:.3f}")
    random = [next_round(net, u).correlations for u in np.random.default_rng(0).random((100, 6, 1))]
    better = sum(r["warm"] > r["cold"] for r in random)
    middle = {name: np.median([r[name] for r in random]) for name in ("warm", "cold")}
    print(f"six trials at random places, 100 times: the warm-GP is closer to f in {better}; ", end="")
    print(f"median correlation warm {middle['warm']:.2f}, cold {middle['cold']:.2f}")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
