"""Does another processor suggest something else? The same trials, the next suggestion, other machine code.

    python benchmarks/processors.py

Studies of 25 trials with two methods on three spaces, recorded with the code for this processor. Then, with the code
for others (OpenBLAS, numpy), each suggestion is asked for again after exactly the recorded trials. The nets are
learned once. 'moved' is the largest distance over the parameters, as a share of a parameter's range.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Array, Space

TRIALS, SEEDS = 25, range(100, 104)
SPACES = {
    "mixed": Space(
        {
            "lr": FloatDistribution(1e-5, 1e-1, log=True),
            "layers": IntDistribution(1, 20),
            "kind": CategoricalDistribution(["a", "b", "c"]),
            "dropout": FloatDistribution(0, 1),
            "momentum": FloatDistribution(0, 1),
        }
    ),
    "continuous": Space({f"x{i}": FloatDistribution(0, 1) for i in range(6)}),
    "table": Space({f"x{i}": CategoricalDistribution([1, 2, 3, 4, 5, 6]) for i in range(5)}),
}
METHODS = ("jumbo-mixture", "jumbo-joint", "gp-ucb")
NEWER = " ".join(np._core._multiarray_umath.__cpu_dispatch__)  # type: ignore[attr-defined]
PROCESSORS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": NEWER},
}


def bowl(u: Array, k: int) -> Array:
    centre = 0.35 + 0.3 * np.random.default_rng(k).random(u.shape[1])
    return np.asarray(0.1 * np.sin(8 * u[:, 0] + k) - np.sum((u - centre) ** 2, axis=1))


def suggestions(folder: Path) -> dict[str, list[list[float]]]:
    """Of every study, as points of the cube. The first call records the trials, later ones follow them."""
    found = {}
    for name, space in SPACES.items():
        for seed in SEEDS:
            for method in METHODS:
                net, trials = folder / f"{name}-{seed}.safetensors", folder / f"{name}-{seed}-{method}.json"
                if not net.exists():
                    rows = [space.sample(np.random.default_rng([seed, k]), 200) for k in range(3)]
                    tasks = tuple(Task(str(k), u, bowl(u, k)) for k, u in enumerate(rows))
                    pretrain(History(space, tasks), seed=seed).save(net)
                optimizer = Optimizer(space, FeatureNet.load(net, space), "maximize", TRIALS, method, seed)
                told = json.loads(trials.read_text()) if trials.exists() else []
                points = []
                for i in range(TRIALS):
                    suggestion = optimizer.ask(running=())
                    points.append(space.encode(suggestion.params).tolist())
                    params = told[i] if i < len(told) else suggestion.params
                    optimizer.tell(params, float(bowl(space.encode(params)[None], 7)[0]))
                trials.write_text(json.dumps([params for params, _ in optimizer.told]))
                found[f"{name} | {method} | {seed}"] = points
    return found


def main() -> None:
    if len(sys.argv) == 3:  # a process of its own, because libraries look at the processor once
        Path(sys.argv[2]).write_text(json.dumps(suggestions(Path(sys.argv[1]))))
        return
    print("| processor | space | method | suggestions | moved by more than 0.001 | 0.01 | 0.1 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        results = {}
        for name, environment in {"": {}, **PROCESSORS}.items():
            file = Path(folder) / f"out{name}.json"
            subprocess.run([sys.executable, __file__, folder, str(file)], env=os.environ | environment, check=True)
            results[name] = json.loads(file.read_text())
        for name in PROCESSORS:
            for kind in dict.fromkeys(key.rpartition(" | ")[0] for key in results[""]):
                pairs = [(results[""][key], results[name][key]) for key in results[""] if key.startswith(kind + " |")]
                moved = np.concatenate([np.abs(np.subtract(a, b)).max(axis=1) for a, b in pairs])
                counts = " | ".join(str(int(np.sum(moved > limit))) for limit in (0.001, 0.01, 0.1))
                print(f"| {name} | {kind} | {len(moved)} | {counts} |")


if __name__ == "__main__":
    main()
