"""What stands in tables of runs and is no parameter: hashes, ids, times, durations, people, machines.

Told by the name of a column, or by what its cells look like. Who knows better says so: `jumbo init --keep COLUMN`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from jumbo_bo.errors import brief


def words(column: str) -> list[str]:
    """'validLoss', 'valid_loss' -> valid, loss"""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower())


NAMES = {  # by the last word of a name
    "an id": words("id ids uuid guid pid ppid jobid runid index idx row number"),
    "a hash": words("hash sha sha1 sha256 md5 checksum digest fingerprint commit revision"),
    "bookkeeping": words(
        "run trial state status seed comment comments note notes remark remarks message error exception traceback tag "
        "tags sweep"
    ),
    "a path": words("path uri url file filename dir directory logdir workdir checkpoint artifact artifacts"),
    "a time": words("timestamp datetime date created started finished ended updated"),
    "a duration": words("runtime elapsed walltime wallclock"),
    "a person": words("user username owner author"),
    "a machine": words("host hostname node nodename machine server cluster ip"),
    "hardware": words("gpu gpus cpu cpus device accelerator cuda"),
}
NAMED = words("run trial job sweep group display study experiment project user host node machine server file")
COUNTS = words("n num number count gpus cpus")  # of machines: these may well be parameters
TIMES = words("datetime timestamp created started finished updated")  # as the first word
SPENT = words("train training fit eval test wall inference total epoch gpu cpu run")
UNITS = words("time times seconds secs sec minutes hours s ms duration")
LENGTHS = words("duration seconds secs sec")  # measured, or set: for how long something is heated
AFTER = words(
    "s ms sec secs seconds min mins minutes h hours"
)  # units that follow a name: 'duration_s', 'elapsed (min)'
CLOCK = words("time date start end at ts epoch when")
EPOCH = 1e9  # seconds since 1970: in 2001

_MACHINES = "node|host|gpu|worker|dgx|ip|server|machine|compute|login|hpc|ec2|vm|pod|runner|rack|nid|desktop|laptop"
_NETS = "local|localdomain|internal|lan|cluster|corp|com|org|net|edu|gov|io|eu|de|uk|fr|ch|cn|jp"
_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_SPELLED = rf"(?:{_MONTHS}\.? {_DAY}|{_DAY} {_MONTHS})"
_CARDS = "[ahv]100|[hb]200|h800|a800|gh200|gb200|a10g?|a30|a40|p4|p40|p100|k40|k80|l4|l40s?|t4|mi\\d{3}x?"
CELLS = (  # of which every cell matches one
    ("a uuid", r"\{?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\}?"),
    ("a time", rf"(?:19|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1{_DAY}(?:[T _]\d\d?\D?\d\d.*)?"),
    ("a time", rf"{_DAY}([-/.]){_DAY}\1(?:19|20)\d\d(?: +\d\d?:\d\d.*)?"),
    ("a time", r"(?:19|20)\d{6}[T_ -]?\d{4,6}Z?"),
    ("a time", rf"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?{_SPELLED}\b.*\d.*"),
    ("a time", r"\d\d?:\d\d(?::\d\d)? ?[ap]m"),
    ("a duration", r"(?:\d+ days?,? )?\+?\d+:\d\d:\d\d\.\d+|\d+ days?,? \+?\d+:\d\d:\d\d"),
    ("a duration", r"\d+\.\d+ ?(?:h|hours?|min|minutes?|s|secs?|seconds?|ms)"),
    ("a path", r"(?:/|\./|\.\./|~/|[a-z][a-z0-9+]*://|[a-z]:\\).*"),
    ("a machine", r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?"),
    ("a machine", rf"(?:{_MACHINES})(?=[-_.\d])[-\w.]*\d[-\w.]*"),
    ("a machine", rf"[a-z][-\w.]*\.(?:{_NETS})"),
)
HARDWARE = re.compile(  # of which every cell has one somewhere
    r"nvidia|geforce|\b[rg]tx[ -]?\d|\btesla\b|\bquadro\b|\bradeon|\binstinct\b|\bxeon\b|\bepyc\b|\bryzen\b|\btpu\b"
    rf"|\bcore(?:\(tm\))? i\d|\bcpu @|\bapple m\d|\bcuda\b|\b(?:{_CARDS})\b",
    re.IGNORECASE,
)
SHORTEST = 7  # characters of a hash


def by_name(column: str, of_numbers: bool) -> str:
    """Why a column of this name is no parameter; empty when the name does not tell."""
    parts = words(column)
    if not column or column.startswith(("Unnamed:", "_")):
        return "it looks like bookkeeping"
    if not parts:
        return ""
    last, before = parts[-1], set(parts[:-1])
    if last in AFTER and parts[-2:-1] and parts[-2] in NAMES["a duration"]:
        return "it looks like a duration"
    if parts[0] in TIMES:
        return "it looks like a time"
    if last in UNITS and set(SPENT) & before:
        return "it looks like a measured time"
    if last == "name" and (not before or set(NAMED) & before):
        return "it looks like bookkeeping"
    if of_numbers and set(COUNTS) & {*before, last if last.endswith("s") else ""}:
        return ""
    return next((f"it looks like {what}" for what, names in NAMES.items() if last in names), "")


def by_text(cells: Sequence[str]) -> str:
    """Why these different texts, at least two, are no choices; empty when they may be some."""
    stripped = [cell.strip() for cell in cells]
    for what, pattern in CELLS:
        compiled = re.compile(pattern, re.IGNORECASE)
        if all(compiled.fullmatch(cell) for cell in stripped):
            return f"{brief(cells[0])} looks like {what}"
    if all(HARDWARE.search(cell) for cell in stripped):
        return f"{brief(cells[0])} looks like hardware"
    if _are_hashes(stripped):
        return f"{brief(cells[0])} looks like a hash or an id"
    return ""


def by_numbers(column: str, low: float, set_by_hand: bool) -> str:
    """As `by_name`, where the numbers decide. `set_by_hand`: they are few, or in steps."""
    parts = words(column)
    timed = parts[-1:] and (parts[-1] in LENGTHS or (parts[-1] in AFTER and parts[-2:-1] == ["duration"]))
    spent = timed or (parts and parts[0] == "time" and set(parts[1:]) <= set(UNITS) and parts[1:])
    if spent and not set_by_hand:
        return "it looks like a duration"
    return "it looks like a time" if low > EPOCH and set(CLOCK) & set(parts) else ""


def _are_hashes(cells: Sequence[str]) -> bool:
    """Of one length, with letters and digits mixed from the start: '9f3c2e1', '3k2x9a0q'; not 'conv3x3', 'conv5x5'."""
    plain = [cell.removeprefix("0x") for cell in cells]
    if len(set(map(len, plain))) != 1 or len(plain[0]) < SHORTEST or len({cell[:2] for cell in plain}) == 1:
        return False
    if not all(re.fullmatch(r"[0-9A-Za-z]+", cell) for cell in plain):
        return False
    changes = [sum(a.isdigit() != b.isdigit() for a, b in pairwise(cell)) for cell in plain]
    return sum(n >= 2 for n in changes) > len(plain) / 2
