"""Files and texts that others wrote, opened and parsed so that whatever is wrong with them can be said in one line."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from jumbo_bo.errors import InputError, MissingFile

MOST_LEVELS = 100  # of lists and objects inside each other; Python's stack holds a thousand calls
_OPENING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)  # a string that never ends, ends there


def check_regular(path: Path) -> None:
    """Refuses what is no file: reading from a pipe or a device may wait for ever."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise MissingFile(f"{path} does not exist; looked in {path.absolute().parent}") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise InputError(f"{path} cannot be used: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(kind):
        raise InputError(f"{path} is a folder, expected a file")
    if not stat.S_ISREG(kind):
        raise InputError(f"{path} is a pipe or a device, expected a file; copy its content to one")


def text_of(path: Path) -> str:
    """All of a file, which must be text."""
    check_regular(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({error})") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def from_json(text: str) -> Any:
    """What the text says. A ValueError in few words when it is no JSON, or more than a program can work with."""
    if text.count("[") + text.count("{") > MOST_LEVELS and levels(text) > MOST_LEVELS:
        raise ValueError(f"more than {MOST_LEVELS} levels inside each other")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(error.msg) from None
    except ValueError:
        raise ValueError("a whole number with more digits than can be read") from None
    if not text.isascii() or "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a pair of surrogates, which is no character") from None
    return value


def levels(text: str) -> int:
    """How many brackets and braces are open at once, outside of strings."""
    now = most = 0
    for found in _OPENING.finditer(text):
        if found[0] in "[{":
            now += 1
            most = max(most, now)
        elif found[0] in "]}":
            now -= 1
    return most


def open_alone(path: Path) -> int:
    """A file to lock, made where there is none, and never cut. A symbolic link is not followed: in a folder that others
    can write to it may lead anywhere."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags, 0o666)
