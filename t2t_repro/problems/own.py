"""A problem of your own: a class in any module, which commands call MODULE:CLASS."""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

from t2t_repro.problems.problem import Problem
from t2t_repro.system.errors import UserError

_NAME = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
_LANGUAGE = re.compile(r"[A-Za-z0-9_-]+")


class OwnProblem(Problem):
    """A class that somebody wrote, its mistakes turned into errors of one line.

    The module of `MODULE:CLASS` is looked for where Python looks: in the folder in
    which the command runs, and in those of PYTHONPATH. A model directory remembers the
    name alone, so that a directory from a stranger brings no code along. A class that
    is missing, no subclass of `Problem`, or fails is a UserError.
    """

    def __init__(self, name: str, data_dir: str | None) -> None:
        super().__init__(data_dir)
        self.name = name
        found = self._class()
        with self._in_one_line("making it"):
            self._problem = found(data_dir)
            self._problem.name = name
        for side in ("source_lang", "target_lang"):
            language = getattr(self._problem, side, None)
            if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
                raise self._error(
                    f"its {side} is {language!r}; give it a language code, such as en"
                )
            setattr(self, side, language)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the class's pairs; UserError if it fails or yields anything else."""
        with self._in_one_line(f'pairs("{split}")'):
            for number, pair in enumerate(self._problem.pairs(split), 1):
                match pair:
                    case (str(source), str(target)):
                        yield source, target
                    case _:
                        raise self._error(
                            f'pair {number:,} of pairs("{split}") is {pair!r:.80}; '
                            "yield a source and a target, both str"
                        )

    def description(self, split: str) -> str:
        """Returns what the class does; UserError if it fails or returns no str."""
        with self._in_one_line(f'description("{split}")'):
            return self._text(self._problem.description(split), "description")

    def fingerprint(self) -> str:
        """Returns what the class does; UserError if it fails or returns no str."""
        with self._in_one_line("fingerprint()"):
            return self._text(self._problem.fingerprint(), "fingerprint")

    def _class(self) -> type[Problem]:
        """Finds the class."""
        match = _NAME.fullmatch(self.name)
        if match is None:
            raise self._error(
                "a class of your own is called MODULE:CLASS, such as my_corpus:MyCorpus"
            )
        module_name, class_name = match.groups()
        with self._in_one_line(f"importing {module_name}"):
            try:
                module = importlib.import_module(module_name)
            except ModuleNotFoundError as error:
                # What the module itself imports may be missing, too.
                if f"{module_name}.".startswith(f"{error.name}."):
                    raise self._error(
                        f"there is no module {module_name} where Python looks; run "
                        "the command in the folder that holds it, or name that folder "
                        "in PYTHONPATH"
                    ) from None
                raise
        found = getattr(module, class_name, None)
        if not _is_problem(found):
            others = ", ".join(n for n, v in vars(module).items() if _is_problem(v))
            raise self._error(
                f"{module_name} has no subclass of t2t_repro.problems.Problem of this "
                f"name; it has {others or 'none at all'}"
            )
        if missing := ", ".join(sorted(getattr(found, "__abstractmethods__", ()))):
            raise self._error(f"the class lacks the method {missing}")
        return found

    def _text(self, value: object, what: str) -> str:
        if not isinstance(value, str) or not value:
            raise self._error(f"its {what} is {value!r:.80}; return some text")
        return value

    @contextmanager
    def _in_one_line(self, what: str) -> Iterator[None]:
        """Turns whatever somebody's code raises into a line that says where."""
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise self._error(f"{what} failed: {_told(error)}") from error

    def _error(self, text: str) -> UserError:
        return UserError(f"problem {self.name}: {text}")


def _is_problem(value: object) -> TypeGuard[type[Problem]]:
    return isinstance(value, type) and issubclass(value, Problem) and value != Problem


def _told(error: BaseException) -> str:
    """Returns an exception's kind and text, and the line that raised it."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text
