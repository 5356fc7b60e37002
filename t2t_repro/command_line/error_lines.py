"""One-line messages for mistakes of the user, full disks and exhausted memory."""

import errno
import re

from t2t_repro.system.errors import UserError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_OUT_OF_MEMORY = re.compile(r"OOM when allocating|[Oo]ut of memory")
_TOO_LARGE = re.compile(r"assertion failed: \[(.* max_tokens_per_device)")
_TENSORFLOW_DISK_FULL = re.compile(
    r"(?:(?P<file>[^\s;:]*/[^\s;:]*)[;:] )?(?:No space left on device|Disk quota exc)"
)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def error_line(error: Exception) -> str | None:
    """Returns a line with the cause and the remedy, or None if the error is a bug.

    Control characters, such as a line end in a name of a file, are escaped.
    """
    line = _describe(error)
    return line and _CONTROL.sub(lambda each: repr(each[0])[1:-1], line)


def _describe(error: Exception) -> str | None:
    """Returns a text with the cause and the remedy, or None if the error is a bug."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return _disk_full(error.filename)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if type(error).__module__.startswith("tensorflow."):
        if _OUT_OF_MEMORY.search(str(error)):
            return (
                f"the device is out of memory ({str(error).splitlines()[0][:200]}); "
                "translate with a smaller --batch_size or --beam_size, or train with a "
                "smaller max_tokens_per_device (--hparams SET,max_tokens_per_device=N)"
            )
        if match := _TOO_LARGE.search(str(error)):
            return match[1]
        match = _TENSORFLOW_DISK_FULL.search(str(error))
        return _disk_full(match["file"]) if match else None
    return None


def _disk_full(file: object) -> str:
    name = f": {file}" if file else ""
    return f"no space left on device{name}; free space and run the command again"
