"""Rows per CPU-second of pretraining at the paper's HPO sizes, beside the same net in PyTorch eager.

12 inputs, 3 x 32 tanh, 4 features, 1 head, 200,000 synthetic rows, one thread, after compilation; the median of three
repeats. Both sides shuffle and gather the rows of each minibatch, and take one AdamW step on it; ours also looks at
the validation loss every 50 steps, as it does in use.

    python benchmarks/pretrain.py --out pretrain.json
"""

import argparse
import json
import os
import statistics
import time
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

# Before the libraries start: the figures are per CPU-second of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402

from jumbo_bo.learning import pretrain as ours  # noqa: E402
from jumbo_bo.learning import training  # noqa: E402

ROWS, INPUTS = 200_000, 12
LAYERS = (INPUTS, 32, 32, 32, 4, 1)
REPEATS = 3


def synthetic(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (ROWS, INPUTS)).astype(np.float32)
    z = np.sin(x @ rng.normal(size=(INPUTS, 1))).astype(np.float32)
    return x, z


def jax_epochs(batch_size, n_steps):
    """Seconds of CPU for n_steps of our training loop, compiled before the clock starts."""
    x, z = synthetic()
    order = np.random.default_rng(1).permutation(ROWS)
    data = training.Data(training.Rows(x, z, np.ones_like(z)), order[4_096:], order[:4_096], None)
    options = training.Pretraining(batch_size=batch_size, max_steps=n_steps, max_epochs=10_000, members=1)
    ours._attempt(data, options, 1e-2, (0, 0), lambda step, loss: None)
    seconds = []
    for repeat in range(REPEATS):
        start = time.process_time()
        trained = ours._attempt(data, options, 1e-2, (repeat, 0), lambda step, loss: None)
        done = trained.info["steps"] + training.ROUND  # the last round only serves to evaluate
        seconds.append((time.process_time() - start) / (done * batch_size))
    return 1 / statistics.median(seconds)


def torch_epochs(batch_size, n_steps):
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    parts = []
    for width, out in pairwise(LAYERS[:-1]):
        parts += [torch.nn.Linear(width, out), torch.nn.Tanh()]
    net = torch.nn.Sequential(*parts, torch.nn.Linear(*LAYERS[-2:]))
    adam = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x, z = (torch.from_numpy(a) for a in synthetic())

    def run(steps):
        order, at = torch.randperm(ROWS), 0
        for _ in range(steps):
            if at + batch_size > ROWS:
                order, at = torch.randperm(ROWS), 0
            rows = order[at : at + batch_size]
            at += batch_size
            adam.zero_grad()
            loss = torch.mean((net(x[rows]) - z[rows]) ** 2)
            loss.backward()
            adam.step()

    run(20)
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        run(n_steps)
        seconds.append((time.process_time() - start) / (n_steps * batch_size))
    return 1 / statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 1024])
    options = parser.parse_args()

    contenders = {f"jumbo-bo (jax {version('jax')})": jax_epochs}
    try:
        import torch

        contenders[f"PyTorch eager ({torch.__version__})"] = torch_epochs
    except ImportError:
        print("PyTorch is not installed; it is left out. Get it with: pip install torch==2.13.0")
    figures = {}
    for name, run in contenders.items():
        for batch_size in options.batch:
            n_steps = training.ROUND * max(20, ROWS * 4 // batch_size // training.ROUND)  # about four epochs
            figures.setdefault(name, {})[str(batch_size)] = run(batch_size, n_steps)
    print(f"{'million rows per CPU-second':32s}" + "".join(f"  batch {size:>5d}" for size in options.batch))
    for name, row in figures.items():
        print(f"{name:32s}" + "".join(f"  {value / 1e6:11.2f}" for value in row.values()))
    if options.out:
        options.out.write_text(json.dumps({"rows_per_cpu_second": figures, "rows": ROWS, "layers": LAYERS}, indent=2))


if __name__ == "__main__":
    main()
