"""XML elements within the segments of TMX and XLIFF: codes and text.

The content of a code is markup of the original document, such as `<b>`, and not part of
the sentence. The content of every other element, such as `hi`, `g`, `pc` and `mrk`, is.

Sources: TMX 1.4b, section "Content markup"; XLIFF 1.2, section 2.4.2 "Inline elements";
XLIFF 2.1, section 4.2.3 "Inline elements".
"""

TMX_CODES = frozenset({"bpt", "ept", "it", "ph", "sub", "ut"})
"""Elements of a TMX `seg` whose content is not text.

`sub` is a text of its own inside a code, such as the title of a link, and not part of
the sentence around it.
"""

XLIFF_CODES = frozenset(
    {"bpt", "bx", "cp", "ec", "em", "ept", "ex", "it", "ph", "sc", "sm", "sub", "x"}
)
"""Elements of an XLIFF `source` or `target` whose content is not text, in all versions.

Those of XLIFF 2 and `bx`, `ex` and `x` are empty.
"""
