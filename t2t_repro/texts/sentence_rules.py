r"""Rule by which texts are divided into sentences.

1. White space that contains a line break or a tab, or is at an end of the text, is a
   separator.
2. White space after a sentence-ending sign (`.`, `!`, `?`, an ellipsis, or the sign of
   another script) is a separator. Closing quotes and brackets may follow the sign.
   After the full-width signs of Chinese and Japanese the separator may be empty.
3. It is not a separator before a lower-case letter or a comma, nor after an initial, an
   abbreviation of the language, or the number or letter of a list item. In languages
   that write ordinals so ("3. Oktober"), it is not a separator after a number of one or
   two digits.
4. After such a number, an initial or a capitalized abbreviation, it is a separator if
   the next word is a pronoun or a similar word, as in "in the U.S. He".

The abbreviations are Moses' lists of nonbreaking prefixes, from sacremoses, and a few
more. Other languages use the English list, as in Moses.
"""

import re
from typing import NamedTuple

from t2t_repro.formats.languages import base_language

# Noncharacters of Unicode mark a copy of the text: the ends of separators, possible
# ends of sentences, and ends that a capitalized abbreviation does not rule out.
FIELD, _MAYBE, _LIKELY = "\ufdd0", "\ufdd1", "\ufdd2"
MARKS = f"[{FIELD}{_MAYBE}{_LIKELY}]"
SPACE = r"[\x09-\x0d\x1c-\x20\x{85}\p{Z}]"  # as in `str.isspace`
_BREAK = r"[\x09-\x0d\x1c-\x1e\x{85}\x{2028}\x{2029}]"
CLAUSE_END = "(?:[,;:\u2013\u2014\u060c\u061b]" + SPACE + "|[\u3001\uff0c\uff1a\uff1b])"
_STOP = "[.!?\u2026\u203c\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4]"
_EMOJI = r"[\p{So}\p{Sk}\x{fe0f}\x{200d}]"
_WIDE_STOP = "[\u3002\uff01\uff1f\uff61]"
_QUOTE = "\"'\u00ab\u00bb\u2018-\u201f\u2039\u203a"
_CLOSING = rf"[{_QUOTE})\]}}]"
_WIDE_CLOSING = "[\"'\u2019\u201d)\u3009\u300b\u300d\u300f\u3011\uff09]"
_OPENING = r"[\x{a1}\x{bf}(\[{" + _QUOTE + "]"
# The letters after these characters are not a whole word.
_WORD_START = "(^|[^\\p{L}\\p{M}\\p{Nd}'\u2019&-])"
_NOTHING = r"[^\x{0}-\x{10ffff}]"
_REPORTED = "(?:\u3068|\u3063\u3066|\u306a\u3069|[,\u3001\uff0c])"

MAYBE_SEVERAL = re.compile(rf"{_STOP}\W*\s\W*\w|{_WIDE_STOP}\W*\w")
"""Pattern of Python for texts that may have several sentences; all others have one."""

_LINE_BREAK = r"[ \t\r]*\n[ \t\r\n]*"
LINE_BREAKS = ((_LINE_BREAK, rf"{FIELD}\0{FIELD}"),)
"""Rule by which texts are divided into lines, in the form of `sentence_rules`."""

FIRST_BREAK = f"(?:{_LINE_BREAK})?"
"""Pattern of the separator before the first line. Other spaces remain in the line."""

_CODES = {"deu": "de", "eng": "en", "fra": "fr", "spa": "es"}
# Languages that write ordinal numbers with a full stop.
_ORDINALS = (
    *("bs", "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv"),
    *("nb", "nn", "no", "sk", "sl", "sr", "tr"),
)
_NUMERIC = "#NUMERIC_ONLY#"
_NUMERAL = re.compile("[0-9ix]|[0-9ivx]{2,}")
# Moses' lists contain these words, but they rather end a sentence before a capital.
_NOT_ABBREVIATED = frozenset(("etc", "usw", "usf", "u.s.w", "dgl", "I"))
# Regular expressions; # follows words that are abbreviations only before a number.
_MORE = {
    "en": "Mt Ft Ing Sra Sept approx cf esp no# Figs?# Vol# Eqs?# Sec# Ch# Apt# p# "
    "vol# fig# ft# al#",
    "de": r"Mt Abs Bd Dipl(?:\.-Ing)? Hr Fr Frl Fa Hl Hrsg Jh Kap Abb Tel Str Jan Feb "
    "Aug Sept Okt Nov Dez Ing Tsd bspw dt ehem engl exkl frz geb gegr gest inkl "
    r"insb max min mtl rd zzgl med nat phil Tab# Aufl# \p{L}+str#",
    "es": "EE",
    "fr": "Mgr Dr Me Pr St Ste janv févr juil oct nov déc no n sept# vol#",
    "it": "dott prof sigg? pag#",
}
# Words that begin sentences, and are neither names nor nouns after an ordinal.
_STARTERS = {
    "en": "A|After|Although|And|Are|As|At|Because|But|Did|Does|During|For|From|He|Her|"
    "His|How|I|If|In|Is|It|My|Now|On|Our|She|Since|So|Some|That|The|Their|Then|There|"
    "These|They|This|Those|Was|We|Were|What|When|Where|While|Who|Why|With|Yet|You",
    "de": "Aber|Als|Am|Auch|Auf|Bei|Da|Danach|Dann|Das|Der|Die|Diese|Dieser|Dieses|"
    "Doch|Du|Ein|Eine|Er|Es|Hier|Ich|Ihr|Im|In|Man|Mit|Nach|Sein|Seine|Sie|So|Und|Vor|"
    "Was|Wenn|Wer|Wie|Wir|Wo",
    "es": "Ahora|Cuando|Ella|Ellos|En|Es|Esta|Este|Esto|Hay|Pero|Por|Si|Y|Yo",
    "fr": "Ce|Cela|Ces|Cette|Dans|Elle|Elles|En|Et|Il|Ils|Je|Mais|Nous|On|Vous",
}


class _Abbreviations(NamedTuple):
    """Alternatives of regular expressions that match the words before a full stop.

    Attributes:
        capitalized: Words with a capital; they may end a sentence.
        others: Other words.
        numeric: Words that are abbreviations only before a number.
    """

    capitalized: str
    others: str
    numeric: str


def sentence_rules(language: str) -> tuple[tuple[str, str], ...]:
    """Returns regular expressions in RE2's syntax and their rewrites, in order.

    Together they insert `FIELD` before and after each separator of a text that contains
    none of the `MARKS`.

    Args:
        language: Code of the language, such as "de" or "de_AT".
    """
    language = base_language(language)
    language = _CODES.get(language, language)
    words = _abbreviations(language)
    # The Greek question mark is usually typed as a semicolon.
    stop = _STOP.replace("?", "?;\u037e") if language == "el" else _STOP
    starters = _STARTERS.get(language, _NOTHING)
    rules = [
        (rf"^{SPACE}+|{SPACE}+$|{SPACE}*{_BREAK}{SPACE}*", rf"{FIELD}\0{FIELD}"),
        # A closing French quotation mark may follow a space.
        (rf"({stop}+{_CLOSING}*(?:{SPACE}\x{{bb}})?)({SPACE})", rf"\1{_MAYBE}\2"),
        # Emoji and the numbers of references, as in "text.[1] Text", may follow.
        (
            rf"({stop}+{_CLOSING}*(?:{_EMOJI}|\[\p{{Nd}}+\])+)({SPACE})",
            rf"\1{_LIKELY}\2",
        ),
        (rf"{_WIDE_STOP}+{_WIDE_CLOSING}*", rf"\0{_LIKELY}"),
        # Verbs of saying follow a quotation in Japanese.
        (rf"({_WIDE_CLOSING}){_LIKELY}({_REPORTED})", r"\1\2"),
        # Georgian has lower-case letters only.
        (rf"{_MAYBE}({SPACE}*\p{{Georgian}})", rf"{_LIKELY}\1"),
        # Names like iPhone also begin sentences.
        (rf"{_MAYBE}({SPACE}*\p{{Ll}}\p{{Lu}})", rf"{_LIKELY}\1"),
        (
            rf"{_MAYBE}((?:{SPACE}|{_OPENING}|[-\x{{2013}}\x{{2014}}])*[\p{{Ll}},;:).])",
            r"\1",
        ),
        (rf"{_MAYBE}({SPACE}+{_CLOSING}+(?:{FIELD}|$))", r"\1"),
        (
            rf"{_MAYBE}({SPACE}+{_OPENING}*(?:{starters})(?:[ ',\x{{2019}}]|$))",
            rf"{_LIKELY}\1",
        ),
        (rf"{_WORD_START}((?:{words.capitalized})\.){_MAYBE}", r"\1\2"),
        (rf"{_WORD_START}((?:{words.others})\.)[{_MAYBE}{_LIKELY}]", r"\1\2"),
        (
            rf"{_WORD_START}((?:{words.numeric})\.){_MAYBE}({SPACE}*\p{{Nd}})",
            r"\1\2\3",
        ),
        # Numbers and letters of list items.
        (
            rf"(^|[{FIELD}{_MAYBE}]{SPACE}*)([(\[]?(?:[\p{{Nd}}.]{{1,7}}|\p{{L}})\.)"
            rf"{_MAYBE}",
            r"\1\2",
        ),
        (rf"[{_MAYBE}{_LIKELY}]({FIELD}|$)", r"\1"),
        (rf"[{_MAYBE}{_LIKELY}]({SPACE}*)", rf"{FIELD}\1{FIELD}"),
    ]
    if language in _ORDINALS:
        number = rf"(^|[^\p{{L}}\p{{Nd}}.,:-])(\p{{Nd}}{{1,2}}\.){_MAYBE}"
        rules.insert(-3, (number, r"\1\2"))
    return tuple(rules)


def _abbreviations(language: str) -> _Abbreviations:
    """Returns the abbreviations of a language."""
    from sacremoses.corpus import NonbreakingPrefixes

    words = _MORE.get(language, "").split()
    for word in NonbreakingPrefixes().words(language):
        word, *is_numeric = word.split(_NUMERIC)
        word = word.strip().removesuffix(".")
        if word not in _NOT_ABBREVIATED and not _NUMERAL.fullmatch(word):
            words.append(re.escape(word) + "#" * len(is_numeric))
    # "I" is also a pronoun and a number; other single capitals are initials.
    capitalized, others, numeric = {"[A-HJ-Z]", r"[^\x{0}-\x{7f}\P{Lu}]"}, set(), set()
    for word in words:
        if word.endswith("#"):
            numeric.add(word[:-1])
        elif f"{word}#" in words:
            continue
        elif word[:1].isupper():
            capitalized.add(word)
        else:
            others |= {word, word[:1].upper() + word[1:]}
    if language != "en":
        capitalized.add("I")
    groups = (sorted(group) or [_NOTHING] for group in (capitalized, others, numeric))
    return _Abbreviations(*map("|".join, groups))
