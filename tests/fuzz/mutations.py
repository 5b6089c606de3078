"""Inputs that are nearly right: a good one, damaged in a few places, or with values that nobody expects."""

from __future__ import annotations

import random
from typing import Any

DEEP = 3000  # levels; Python's stack holds a thousand calls

TOKENS = [
    *(b"1" * n for n in (25, 400, 5000)),  # beyond 64 bits, beyond a float, beyond what int() reads
    b"0x" + b"f" * 5000,
    b"9007199254740993",
    b"-1e-400",
    b"1e999",
    b"nan",
    b"-inf",
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"{a=" * DEEP,
    b"- " * DEEP,
    b"[[[]]]",
    b'{"a": {"b": [1, {}]}}',
    b"\x00",
    b"\x1b[31m\x1b]0;title\x07",
    b"\x9b31m",
    b"\xff\xfe",
    b"\xc2\x9b2J",
    "\u202e\u2028".encode(),
    b'"\\ud800"',
    b'"',
    b"'",
    b'"""',
    b",",
    b"=",
    b":",
    b"\n",
    b"\r\n",
    b"\t",
    b"#",
    b"2020-13-45",
    b"2020-01-01T00:00:00Z",
    b"&a [*a]",
    b"*a",
    b"<<: *a",
    b"!!int ''",
    b"!!timestamp x",
    b"- ",
    b"1:2:3",
    b"-rf",
    b"{}",
    b"[]",
    b"x" * 30_000,
]


def damaged(rng: random.Random, good: bytes, tokens: list[bytes] = TOKENS) -> bytes:
    """One to four changes: bytes changed, cut out, repeated or moved, and tokens put in or in place of a word."""
    data = bytearray(good)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 200)))
        match rng.randrange(8):
            case 0:
                data[at:end] = bytes(rng.randrange(256) for _ in range(end - at))
            case 1 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            case 4:
                del data[at:]
            case 5:
                data[at:at] = rng.choice(tokens)
            case 6:
                start, stop = _word(data, at)
                data[start:stop] = rng.choice(tokens)
            case _:
                other = rng.randrange(len(data) + 1)
                data[at:end], data[other : other + 1] = data[other : other + 1], data[at:end]
    return bytes(data)


def _word(data: bytearray, at: int) -> tuple[int, int]:
    """The letters, digits and dots around a place."""
    start = stop = at
    while start and (data[start - 1 : start].isalnum() or data[start - 1] in b".-"):
        start -= 1
    while stop < len(data) and (data[stop : stop + 1].isalnum() or data[stop] in b".-"):
        stop += 1
    return start, stop


def nested(levels: int) -> Any:
    value: Any = 1
    for i in range(levels):
        value = [value] if i % 2 else {"a": value}
    return value


def atom(rng: random.Random) -> Any:
    """A number or a text, most of them unusual."""
    return rng.choice(
        (
            0,
            -1,
            1,
            0.5,
            1e-320,
            1.7e308,
            float("nan"),
            float("inf"),
            2**53 + 1,
            -(2**63),
            10**400,
            10**5000,
            rng.random(),
            rng.randrange(-(10**20), 10**20),
            True,
            None,
            "",
            "adam",
            "0.01",
            "1" * 5000,
            "x" * 30_000,
            "\x1b[2J",
            "\ud800",
            "-rf",
        )
    )


def value(rng: random.Random, levels: int = 3) -> Any:
    """An atom, or a list or mapping of such values; sometimes a very deep one."""
    if rng.random() < 0.02:
        return nested(rng.choice((50, 150, 900)))
    if levels == 0 or rng.random() < 0.6:
        return atom(rng)
    if rng.random() < 0.5:
        return [value(rng, levels - 1) for _ in range(rng.randrange(4))]
    keys = ("lr", "opt", "name", "value", "config", "summary", "state", "a\x1b[1m", "x" * 3000)
    return {rng.choice(keys): value(rng, levels - 1) for _ in range(rng.randrange(4))}
