"""The one exception that is shown to a person as it is, without a traceback."""


class UserError(Exception):
    """What is wrong and what to do about it."""
