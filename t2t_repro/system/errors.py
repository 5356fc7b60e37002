"""Exception for mistakes of the user."""


class UserError(Exception):
    """Mistake that the user can correct.

    The message is one line with the file, line or flag and a remedy. Commands print it
    without a traceback and exit with status 2.
    """
