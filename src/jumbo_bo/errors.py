"""The exceptions that are shown to a person as they are, without a traceback, and how they quote another."""


class UserError(Exception):
    """What is wrong and what to do about it."""


class InputError(UserError, ValueError):
    """An argument or data that cannot be used. A program may catch it as the ValueError it is."""


class MissingFile(UserError, FileNotFoundError):
    """A file that was named and is not there."""


def first_line(error: BaseException) -> str:
    """What an exception of another library says, short enough to be quoted in one of ours."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
