"""The documentation works: every block runs, every relative link leads somewhere.

The blocks of a page run one after the other in a folder with a small `runs.csv`:

    ```python               runs; the Python blocks of a page share one namespace
    ```python file=t.py     becomes a file; the same for any language
    ```sh                   runs in bash, stops at the first error
    ```console              the lines after '$ ' run like sh, the others show what a reader may see

A block that cannot run here is preceded by a line `<!-- no-run: reason -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parent.parent
RUN = sorted([REPO / "README.md", *(REPO / "docs").rglob("*.md")])
PAGES = sorted({*RUN, *REPO.glob("*.md"), *(REPO / "benchmarks").rglob("*.md")})

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>.*?) *$")
NO_RUN = re.compile(r"<!-- *no-run: *\S.*-->")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|href)=\"([^\"]+)\"")


def blocks(text: str) -> list[tuple[int, str, str, bool]]:
    """(first line, language, code, may run) of each fenced block."""
    found, lines, i, previous = [], text.splitlines(), 0, ""
    while i < len(lines):
        opening = FENCE.match(lines[i])
        if not opening:
            previous = lines[i].strip() or previous
            i += 1
            continue
        end = opening["indent"] + opening["fence"]
        stop = next((j for j in range(i + 1, len(lines)) if lines[j].rstrip() == end), len(lines))
        code = "\n".join(line.removeprefix(opening["indent"]) for line in lines[i + 1 : stop])
        found.append((i + 2, opening["language"], code, not NO_RUN.search(previous)))
        i, previous = stop + 1, ""
    return found


def short(path: Path) -> str:
    return str(path.relative_to(REPO))


@pytest.fixture
def folder_with_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    """Three datasets, 40 runs each: the best learning rate and the level of the loss differ a little."""
    lines = ["dataset,lr,batch_size,optimizer,loss"]
    for k, dataset in enumerate(("mnist", "svhn", "cifar")):
        for _ in range(40):
            lr, batch = 10 ** rng.uniform(-5, -1), int(rng.choice([16, 32, 64, 128]))
            optimizer = str(rng.choice(["adam", "sgd"]))
            miss = (np.log10(lr) + 3 - 0.2 * k) ** 2 + 0.1 * abs(np.log2(batch / 32)) + 0.3 * (optimizer == "sgd")
            lines.append(f"{dataset},{lr:.6g},{batch},{optimizer},{0.1 * (k + 1) * (1 + miss):.6g}")
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: Path, folder: Path, shell: Callable[[str], None]) -> None:
    namespace = {"__name__": "__docs__"}
    for line, language, code, may_run in blocks(page.read_text()):
        kind, _, file = language.partition(" file=")
        if not may_run:
            continue
        if file:
            (folder / file).write_text(f"{code}\n")
        elif kind == "python":
            # Blank lines in front give errors the line number of the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        elif kind == "sh":
            shell(code)
        elif kind == "console":
            shell("\n".join(command[2:] for command in code.splitlines() if command.startswith("$ ")))


def bash(code: str, folder: Path, programs: Path) -> None:
    """Runs the code with the programs of one Python environment first in the PATH."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n\n{done.stdout}\n{done.stderr}"


# The tutorial runs in tests/integration/test_tutorial.py, in an environment of its own.
@pytest.mark.parametrize("page", [page for page in RUN if page.name != "tutorial.md"], ids=short)
def test_blocks_run(page: Path, folder_with_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMBO_CACHE", str(folder_with_runs / "cache"))
    run_page(page, folder_with_runs, lambda code: bash(code, folder_with_runs, Path(sys.executable).parent))


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_relative_links_exist(page: Path) -> None:
    text = page.read_text()
    for _, _, code, _ in blocks(text):
        text = text.replace(code, "") if code else text
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:|#", link, re.IGNORECASE):
            continue
        target = (page.parent / link.split("#")[0]).resolve()
        assert target.exists(), f"{short(page)} links to {link}, which does not exist"
        assert target.is_relative_to(REPO), f"{short(page)} links to {link}, outside the repository"


def test_blocks_are_found() -> None:
    text = "a\n```python file=x.py\nx = 1\n```\n<!-- no-run: needs a GPU -->\n\n```python\ny\n```\n"
    text += "- item\n  ```sh\n  ls\n  ```\n"
    assert blocks(text) == [(3, "python file=x.py", "x = 1", True), (8, "python", "y", False), (12, "sh", "ls", True)]
