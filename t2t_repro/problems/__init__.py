"""What a model learns from: `names()` lists the problems, `create(name)` makes one.

A problem of your own is a subclass of `Problem`, which every command finds as
`--problem MODULE:CLASS`.
"""

from __future__ import annotations

import difflib

from t2t_repro.problems.problem import Problem
from t2t_repro.system.errors import UserError

__all__ = ["Problem", "create", "names"]

_BUILT_IN = "translate_ende_numbers"
_FILES = "files"
_WMT = ("translate_ende_wmt14", "translate_enfr_wmt14", "translate_ende_wmt_t2t")
_PARSING = ("parse_wsj", "parse_wsj_semi")


def names() -> list[str]:
    """Returns the names of the problems that are here, in the order of a help text."""
    return [_BUILT_IN, _FILES, *_WMT, *_PARSING]


def create(
    name: str,
    data_dir: str | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> Problem:
    """Returns the problem of a name or `MODULE:CLASS`; reads no sentence yet.

    `files` and the parsing problems need `data_dir`; the WMT problems look for a
    prepared TFDS data set in its sub-folder `tfds`, or in TFDS's own folder if it is
    None. `files` takes the languages as the endings of its files; for the other
    problems they can only confirm what they are. UserError: the name is unknown, a
    folder or language is missing or wrong, or a class of your own is no problem or
    fails.
    """
    # Imported where they are used: a run needs one problem, not all their libraries.
    if name == _FILES:
        from t2t_repro.problems.files import FilesProblem

        return FilesProblem(data_dir, source_lang, target_lang)
    problem: Problem
    if name == _BUILT_IN:
        from t2t_repro.problems.translate_ende_numbers import TranslateEndeNumbers

        problem = TranslateEndeNumbers(data_dir)
    elif name in _PARSING:
        from t2t_repro.problems.parse_wsj import ParseWsj

        problem = ParseWsj(name, data_dir)
    elif name in _WMT:
        from t2t_repro.problems.wmt import WmtProblem

        problem = WmtProblem(name, data_dir)
    elif ":" in name:
        from t2t_repro.problems.own import OwnProblem

        problem = OwnProblem(name, data_dir)
    else:
        near = difflib.get_close_matches(name, names(), n=1, cutoff=0.0)[0]
        raise UserError(
            f"--problem {name}: there is no such problem; did you mean {near}? "
            f"Known are {', '.join(names())}, and a class of your own as MODULE:CLASS."
        )
    for flag, given, own in (
        ("--source_lang", source_lang, problem.source_lang),
        ("--target_lang", target_lang, problem.target_lang),
    ):
        if given is not None and given != own:
            raise UserError(
                f"{flag} {given}: {problem.name} translates {problem.source_lang} to "
                f"{problem.target_lang}; leave the flag out."
            )
    return problem
