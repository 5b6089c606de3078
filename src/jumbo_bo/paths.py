"""Paths as a person writes them, and files that are never seen half written."""

from __future__ import annotations

import os
import secrets
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
    # A new file with a name that nobody can guess: in a folder that others can write to, a symbolic link of that name
    # could lead to any file of ours.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
