"""The exceptions that are shown to a person as they are, without a traceback."""


class UserError(Exception):
    """What is wrong and what to do about it."""


class InputError(UserError, ValueError):
    """An argument or data that cannot be used. A program may catch it as the ValueError it is."""


class MissingFile(UserError, FileNotFoundError):
    """A file that was named and is not there."""
