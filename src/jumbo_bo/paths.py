"""Paths as a person writes them."""

from __future__ import annotations

import os


def at_home(place: str | os.PathLike[str]) -> str:
    """A path or an address such as 'sqlite:///~/study.db', where a leading `~` means the home directory."""
    scheme, separator, rest = os.fspath(place).rpartition(":///")
    return scheme + separator + os.path.expanduser(rest)
