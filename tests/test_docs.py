"""The documentation is true: every block runs and prints what the page shows, every relative link leads somewhere.

The blocks of a page run one after the other in a folder with a small `runs.csv`:

    ```python               runs; the Python blocks of a page share one namespace
    ```python file=t.py     becomes a file; the same for any language
    ```sh                   runs in bash, stops at the first error
    ```console              the lines after '$ ' run like sh, the others are what they print
    ```text                 what the block just before it prints; without a block before it, any text

A block that cannot run here is preceded by a line `<!-- no-run: reason -->`. The cells of a notebook run like the
Python blocks of a page, and print what it keeps of them.

What a page shows is compared with what is printed line by line. Numbers may differ, and so may white space, because
columns are as wide as their numbers; the other characters may not. `...` on a line of its own stands for any lines,
within a line for any part of it. Words that hang on the last bit of a number, such as which of two equal choices is
suggested, are left out by it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parent.parent
RUN = sorted([REPO / "README.md", *(REPO / "docs").glob("*.md")])  # not what `make docs` has built below
PAGES = sorted({*RUN, *REPO.glob("*.md"), *(REPO / "benchmarks").rglob("*.md")})

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>.*?) *$")
NO_RUN = re.compile(r"<!-- *no-run: *\S.*-->")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
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


def lines_to_compare(text: str) -> list[str]:
    """What is said when a wait takes long on a busy machine does not count."""
    lines = (" ".join(NUMBER.sub("0", line).split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("Waiting for the storage")]


def is_shown(shown: str, printed: str) -> bool:
    """Whether the text on a page is true of what was printed, by the rule at the top of this file."""
    pattern = ""
    for line in lines_to_compare(shown):
        pattern += r"(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines_to_compare(printed))) is not None


def run_python(code: str, page: Path, line: int, namespace: dict[str, object]) -> str:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            # Blank lines in front give errors the line number of the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
    finally:
        print(out.getvalue())  # pytest shows it when a block fails
    return out.getvalue()


def transcript(code: str) -> str:
    """The commands of a console block as a script that prints each of them before its output."""
    commands = [line for line in code.splitlines() if line.startswith("$ ")]
    return "\n".join(f"printf '%s\\n' {shlex.quote(command)}\n{command[2:]}" for command in commands)


def run_page(page: Path, folder: Path, shell: Callable[[str], str]) -> None:
    """Runs the blocks; `shell` runs a script and returns what it prints."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    printed: str | None = None
    for line, language, code, may_run in blocks(page.read_text()):
        kind, _, file = language.partition(" file=")
        before, printed = printed, None
        if not may_run:
            continue
        if file:
            (folder / file).write_text(f"{code}\n")
        elif kind == "python":
            printed = run_python(code, page, line, namespace)
        elif kind == "sh":
            printed = shell(code)
        elif kind == "console":
            before = shell(transcript(code))
        if kind in ("console", "text") and not file and before is not None:
            assert is_shown(code, before), f"{page.name}, line {line} shows\n{code}\n\nbut what is printed is\n{before}"


def bash(code: str, folder: Path, programs: Path) -> str:
    """Runs the code with the programs of one Python environment first in the PATH; what a terminal would show."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n\n{done.stdout}"
    return done.stdout


# The tutorial runs in tests/integration/test_tutorial.py, in an environment of its own.
@pytest.mark.parametrize("page", [page for page in RUN if page.name != "tutorial.md"], ids=short)
def test_blocks_run(page: Path, folder_with_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMBO_CACHE", str(folder_with_runs / "cache"))
    run_page(page, folder_with_runs, lambda code: bash(code, folder_with_runs, Path(sys.executable).parent))


@pytest.mark.parametrize("page", sorted((REPO / "docs" / "notebooks").glob("*.ipynb")), ids=short)
def test_notebooks_run(page: Path, folder_with_runs: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for cell in json.loads(page.read_text())["cells"]:
        if cell["cell_type"] == "code":
            printed = run_python("".join(cell["source"]), page, 1, namespace)
            shown = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
            assert is_shown(shown, printed), f"{page.name} shows\n{shown}\n\nbut what is printed is\n{printed}"


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


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("trial 0: 0.31, much better", "trial 12: -1.5e-07, much better\n", True),
        ("trial 0: 0.31, much better", "trial 0: 0.31, worse\n", False),
        ("a  40 / 40   0.3 .. 2.053", "a  62,208 / 40  0.333 .. 2", True),
        ("one\ntwo", "one\n\ntwo\n", True),
        ("one", "one\ntwo\n", False),
        ("one\ntwo", "one\n", False),
        ("one\n...\nfour", "one\ntwo\nthree\nfour\n", True),
        ("one\n...\nfour", "one\ntwo\nfour!\n", False),
        ("best: ..., in trial 3", "best: x=1, in trial 3", True),
        ("learning ...", "learning ...", True),
        ("learning ...", "learning\nmore", False),
        ("", "a warning", False),
    ],
)
def test_what_a_page_may_show(shown: str, printed: str, same: bool) -> None:
    assert is_shown(shown, printed) is same


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ echo one; echo two >&2\none\ntwo\n$ echo three\n{}\n```\n",
        "```sh\necho three\n```\n```text\n{}\n```\n",
        "```python\nprint('three')\n```\nprints\n```text\n{}\n```\n",
    ],
)
def test_a_page_that_lies_is_found(block: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for shown in ("three", "four"):
        page.write_text("```text\nany text\n```\n" + block.format(shown))
        with pytest.raises(AssertionError, match="four") if shown == "four" else contextlib.nullcontext():
            run_page(page, tmp_path, lambda code: bash(code, tmp_path, tmp_path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script async src="https://cdn.example/math.js"></script>', 1),
        ('<link rel="stylesheet" href="//fonts.example/a.css" /><img alt="" src="http://example.org/a.png">', 2),
        ("@import 'https://fonts.example/a.css'; a { background: url(https://example.org/a.png) }", 2),
        ("decode(u: TypeAliasForwardRef('Array'))", 1),
        ('<script src="_static/a.js"></script><a href="https://optuna.org">Optuna</a> a { src: url(a.woff2) }', 0),
    ],
)
def test_the_site_loads_nothing_from_elsewhere(text: str, found: int) -> None:
    """`make docs` looks at every file of the site in this way."""
    assert len(runpy.run_path(str(REPO / "docs" / "conf.py"))["faults"](text)) == found
