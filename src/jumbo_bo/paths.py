"""Paths as a person writes them, and files that are never seen half written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def at_home(place: str | os.PathLike[str]) -> str:
    """A path or an address such as 'sqlite:///~/study.db', where a leading `~` means the home directory."""
    scheme, separator, rest = os.fspath(place).rpartition(":///")
    return scheme + separator + os.path.expanduser(rest)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file so that a reader sees the old one or the whole new one. An error leaves the old one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
