"""The exceptions that are shown to a person as they are, without a traceback, and how they quote input and others.

What is wrong often has to be quoted, and may be anything: a number of five thousand digits, a column name that clears
the screen, an address with a password in it. The functions here make it fit to be shown.
"""

from __future__ import annotations

import re
from typing import Any

LONGEST = 1500  # characters of a message; what is cut is in the middle, as the end says what to do
QUOTED = 80  # characters of one thing in it

# Terminals obey these; they turn text around, or cannot be written in UTF-8. A line feed stays.
_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_SECRETS = "pass|pwd|secret|token|signature|credential|api_?key|access_?key"
_IN_QUERY = re.compile(rf"([?&;](?:[^=&;#\s]*(?:{_SECRETS})[^=&;#\s]*|sig)=)[^&;#\s'\"]*", re.IGNORECASE)
_OF_USER = re.compile(r"(://[^:/?#@\s\[]*:)(?:\S*@|(?!\d*(?:\W|$))[^\s/?#]*())")  # to the '@', or what is no port


class UserError(Exception):
    """What is wrong and what to do about it."""

    def __str__(self) -> str:
        return middle_cut(printable(masked(super().__str__())))


class InputError(UserError, ValueError):
    """An argument or data that cannot be used. A program may catch it as the ValueError it is."""


class MissingFile(UserError, FileNotFoundError):
    """A file that was named and is not there."""


def first_line(error: BaseException) -> str:
    """What an exception of another library says, short enough to be quoted in one of ours."""
    return clip(masked((str(error).strip() or type(error).__name__).splitlines()[0]), 3 * QUOTED)


def brief(value: Any, width: int = QUOTED) -> str:
    """A value as Python writes it, as far as there is room."""
    try:
        return clip(masked(repr(value)), width)
    except (ValueError, RecursionError):  # too many digits, or too many levels
        return f"a value of type {type(value).__name__} that is too large to show"


def clip(text: str, width: int = 28) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def middle_cut(text: str, width: int = LONGEST) -> str:
    return text if len(text) <= width else f"{text[: width // 2]} [...] {text[-width // 2 :]}"


def printable(text: str) -> str:
    """The text without characters that a terminal would obey; in their place the escapes that name them."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escaped(text: str) -> str:
    """JSON that says the same, with such characters as JSON's own escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def masked(text: str) -> str:
    """The text without passwords and other secrets of the addresses in it."""
    if "://" not in text:
        return text
    return _IN_QUERY.sub(r"\1***", _OF_USER.sub(lambda m: m[1] + ("***@" if m[2] is None else "***"), text))
