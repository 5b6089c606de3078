"""Data that are neither here nor on PyPI: found in a folder the reader names."""

from __future__ import annotations

import os
from pathlib import Path

from jumbo_bo.paths import at_home


def find_folder(given: Path | None, name: str, file: str, advice: str) -> Path:
    """The folder with `file`: `given`, else $JUMBO_DATA, else shared/data beside the repository, or the folder `name`
    in it. `advice` ends the error when there is none."""
    root = given or os.environ.get("JUMBO_DATA")
    beside = [Path.cwd().parent / "shared/data", Path(__file__).parents[4] / "shared/data"]
    roots = [Path(at_home(root))] if root else beside
    for folder in (folder for root in roots for folder in (root / name, root)):
        if (folder / file).exists():
            return folder
    raise FileNotFoundError(f"no {file} in {', '.join(map(str, dict.fromkeys(roots)))}; {advice}")
