"""The one exception that stands for a mistake of the user."""


class UserError(Exception):
    """A mistake that the user can mend.

    The message is one line: which file, line or flag, and what to do. Every command
    prints it without a traceback and exits with status 2.
    """
