"""Exception for mistakes of the user, and numbers in its messages."""


class UserError(Exception):
    """Mistake that the user can correct.

    The message is one line with the file, line or flag and a remedy. Commands print it
    without a traceback and exit with status 2.

    Attributes:
        exit_status: Exit status of commands.
    """

    exit_status = 2


def format_count(number: int, noun: str) -> str:
    """Formats a number with its noun: "1 line", "2,000 lines"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
