"""Exceptions of Python's and NumPy's readers for damaged files."""

import lzma
import struct
import tokenize
import zipfile
import zlib

DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error)
"""Exceptions of `zipfile` for every method of compression, besides OSError.

bzip2 raises OSError for damaged data, and a seek to a wrong offset does.
"""

DAMAGED_ARRAY = (
    *(ValueError, EOFError, KeyError, AttributeError, OverflowError, RuntimeError),
    *(SyntaxError, TypeError, MemoryError, tokenize.TokenError, *DAMAGED_ZIP),
)
"""Exceptions of `numpy.load`, whose headers are Python literals, besides OSError."""
