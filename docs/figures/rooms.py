"""The rooms of the code, drawn from its imports, and how far one suggestion walks through them.

    python docs/figures/rooms.py            # the picture and the counts
    python docs/figures/rooms.py --write    # puts the picture into CONTRIBUTING.md
    python docs/figures/rooms.py --check    # fails when another one is there

A room is a folder of the package. The modules beside them form one of their own, `jumbo_bo`, without the small ones of
GROUND that every room may import. The package is the one that Python finds: with the folder `src` of another version in
PYTHONPATH, the counts are those of that version.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = "jumbo_bo"
GROUND = ("errors", "extras", "inputs", "paths", "waiting")
PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
PLACE = re.compile(r"(<!-- rooms -->\n```text\n)(.*?)(```\n<!-- /rooms -->)", re.DOTALL)


@cache
def folder() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None, f"{PACKAGE} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def modules() -> dict[str, Path]:
    """Name -> file, without the `__init__.py` of the package itself."""
    found = {}
    for path in sorted(folder().rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(folder()).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found[PACKAGE]
    return found


def room(module: str) -> str | None:
    """The folder a module lies in; None on the ground."""
    top = module.split(".")[1]
    if top in GROUND:
        return None
    return top if (folder() / top).is_dir() else PACKAGE


@cache
def imported(module: str) -> frozenset[str]:
    """Modules that a module imports, ours and others', in functions too, but not under `if TYPE_CHECKING`."""
    path = modules()[module]
    found = set()
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = [PACKAGE, *path.relative_to(folder()).parent.parts]
            source = ".".join([*(start[: len(start) - node.level + 1] if node.level else []), *[node.module or ""]])
            source = source.rstrip(".")
            # `from jumbo_bo.models import gp` names a module, `from jumbo_bo.models.gp import fit` a function in one.
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else source for name in names}
        todo.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def ours(module: str) -> set[str]:
    return {name for name in imported(module) if name in modules() and name != module}


def doors() -> dict[str, set[str]]:
    """Room -> the rooms it imports from."""
    found: dict[str, set[str]] = {}
    for module in modules():
        if here := room(module):
            others = {there for name in ours(module) if (there := room(name))}
            found.setdefault(here, set()).update(others - {here})
    return found


def floors() -> list[list[str]]:
    """Rooms that import no other, those that import only these, and so on up."""
    order = TopologicalSorter(doors())
    order.prepare()
    found = []
    while order.is_active():
        found.append(sorted(order.get_ready()))
        order.done(*found[-1])
    return found


def picture() -> str:
    rooms = [name for floor in floors() for name in floor]
    size = Counter(room(module) for module in modules())
    lines = []
    for i, name in enumerate(rooms):
        marks = "".join("■ " if other in doors()[name] else "· " for other in rooms[:i])
        lines.append(f"{size[name]:3d}  {marks}{name}\n")
    return "".join(lines)


def longest_chain() -> list[str]:
    """The longest way down along imports, from module to module."""
    chain: dict[str, list[str]] = {}
    for module in TopologicalSorter({module: ours(module) for module in modules()}).static_order():
        below = max((chain[name] for name in sorted(ours(module))), key=len, default=[])
        chain[module] = [module, *below]
    return max(chain.values(), key=len)


def walk(trials: int = 10) -> tuple[Counter[str], int]:
    """Calls into each file while the suggestion after so many trials is made, and how many come from another file."""
    import polars
    from optuna.distributions import CategoricalDistribution, IntDistribution

    from jumbo_bo import History, Optimizer, Space

    space = Space({"n": IntDistribution(0, 9), "kind": CategoricalDistribution(["a", "b"])})
    grid = [{"n": n, "kind": kind} for n in range(10) for kind in ("a", "b")]

    def loss(params: dict[str, Any], best: float) -> float:
        return (float(params["n"]) - best) ** 2 / 10 + 0.5 * (params["kind"] == "b")

    rows = [{**params, "task": task, "y": loss(params, best)} for task, best in (("p", 5), ("q", 7)) for params in grid]
    old = History.from_frame(polars.DataFrame(rows), space, task="task", objective="y", direction="minimize")
    optimizer = Optimizer(space, old, n_trials=20)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, loss(suggestion.params, 6))

    calls: Counter[str] = Counter()
    crossings = 0
    home = f"{folder()}/"

    def callers(frame: FrameType | None) -> Iterator[str]:
        while frame is not None:
            if frame.f_code.co_filename.startswith(home):
                yield frame.f_code.co_filename
            frame = frame.f_back

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal crossings
        if event == "call" and (path := frame.f_code.co_filename).startswith(home):
            calls[path.removeprefix(home)] += 1
            crossings += next(callers(frame.f_back), path) != path

    sys.setprofile(seen)
    try:
        optimizer.ask()
    finally:
        sys.setprofile(None)
    return calls, crossings


def counts() -> str:
    size = Counter(room(module) or "ground" for module in modules())
    lines = [f"files: {len(modules())}; {', '.join(f'{name} {n}' for name, n in sorted(size.items()))}"]
    try:
        lines.append(f"rooms: {len(doors())} on {len(floors())} floors")
    except CycleError as error:
        lines.append(f"rooms: {len(doors())}, with a circle of imports: {' > '.join(error.args[1])}")
    down = [name.removeprefix(f"{PACKAGE}.") for name in longest_chain()]
    lines.append(f"longest chain of imports: {len(down)} modules: {' > '.join(down)}")
    calls, crossings = walk()
    lines.append(f"one ask(): {len(calls)} files, {crossings} calls from one file to another of {calls.total()} calls")
    lines.append(f"  {', '.join(sorted(calls))}")
    return "\n".join(lines)


def shown() -> str:
    """The picture in CONTRIBUTING.md."""
    found = PLACE.search(PAGE.read_text())
    assert found is not None, f"{PAGE.name} has no place for the picture, '<!-- rooms -->'"
    return found[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the picture into CONTRIBUTING.md")
    parser.add_argument("--check", action="store_true", help="is it the one in CONTRIBUTING.md?")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(PLACE.sub(lambda place: place[1] + picture() + place[3], PAGE.read_text()))
    elif options.check:
        if shown() != picture():
            sys.exit(f"the picture of the rooms in {PAGE.name} is out of date; run: python {sys.argv[0]} --write")
    else:
        with suppress(CycleError):
            print(picture())
        print(counts())


if __name__ == "__main__":
    main()
