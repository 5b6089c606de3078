"""All that docs/big.md shows: trials.py, rows.py and tasks.py one after the other, then the picture of their results.

    python benchmarks/scale.py            # an hour; needs what trials.py needs
    python benchmarks/scale.py --quick    # minutes: up to 500 trials, a million rows, a hundred tasks; draws nothing

Each of the three has options of its own and can be run alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WHOLE = (
    ("trials.py", "--trials", "50,200,500,1000,2000,10000", "--out", str(RESULTS / "trials.json")),
    ("rows.py", "--rows", "1e5,1e6,1e7,1e8"),
    ("tasks.py",),
    (str(HERE.parent / "docs" / "figures" / "big.py"),),
)
QUICK = (
    ("trials.py", "--trials", "50,200,500", "--problems", "table,12"),
    ("rows.py", "--rows", "1e5,1e6"),
    ("tasks.py", "--cells", "10x1000,100x1000", "--problems", "5"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    for script, *options in QUICK if parser.parse_args().quick else WHOLE:
        print(f"\n{script} {' '.join(options)}", flush=True)
        subprocess.run([sys.executable, HERE / script, *options], check=True)


if __name__ == "__main__":
    main()
