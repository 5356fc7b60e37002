"""Problems: sources of sentence pairs to train and evaluate on.

`names()` lists the built-in problems and `create(name)` creates one. A custom problem
is a subclass of `Problem`; commands take it as `--problem MODULE:CLASS`.
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
    """Returns the names of the built-in problems, in the order of the help text."""
    return [_BUILT_IN, _FILES, *_WMT, *_PARSING]


def create(
    name: str,
    data_dir: str | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> Problem:
    """Creates a problem without reading any sentences.

    Args:
        name: One of `names()`, or `MODULE:CLASS` for a custom problem.
        data_dir: Folder of the data, required by `files` and the parsing problems. The
            WMT problems look for a prepared TFDS data set in it and in TFDS's folder.
        source_lang: Source language; for `files`, the extension of the source files.
            The other problems have a fixed language.
        target_lang: Target language; see `source_lang`.

    Raises:
        UserError: The name is unknown, a folder or language is missing or wrong, or the
            custom class fails or is not a `Problem`.
    """
    # Local imports load only the libraries that this problem needs.
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
            f"problem {name}: unknown problem; did you mean {near}? "
            f"Choose one of {', '.join(names())}, or a custom class as MODULE:CLASS"
        )
    for argument, language, expected in (
        ("source_lang", source_lang, problem.source_lang),
        ("target_lang", target_lang, problem.target_lang),
    ):
        if language is not None and language != expected:
            raise UserError(
                f"{argument} {language}: {problem.name} translates "
                f"{problem.source_lang} to {problem.target_lang}; omit it"
            )
    return problem
