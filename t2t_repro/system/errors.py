"""The one exception that stands for a mistake of the user."""


class UserError(Exception):
    """A mistake that the user can mend.

    The message is one line that names the file, line or flag concerned and says
    what to do. Every command prints it without a traceback and exits with status 2.
    """
