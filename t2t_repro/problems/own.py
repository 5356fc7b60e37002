"""Custom problems: user-defined classes, selected with `--problem MODULE:CLASS`."""

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
    """Wrapper of a user-defined problem that reports each error in one line.

    The module of `MODULE:CLASS` is imported from the current folder or from PYTHONPATH.
    A model directory stores only the name, so loading somebody else's model directory
    does not import code from it.

    Args:
        name: `MODULE:CLASS`.
        data_dir: Argument of the class's constructor.

    Raises:
        UserError: The class is missing, is not a subclass of `Problem`, or fails.
    """

    def __init__(self, name: str, data_dir: str | None) -> None:
        super().__init__(data_dir)
        self.name = name
        problem_class = self._class()
        with self._convert_errors(f"{problem_class.__name__}(data_dir)"):
            self._problem = problem_class(data_dir)
            self._problem.name = name
        for side in ("source_lang", "target_lang"):
            language = getattr(self._problem, side, None)
            if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
                raise self._error(
                    f"its {side} is {language!r}; give it a language code, such as en"
                )
            setattr(self, side, language)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the pairs of the wrapped problem.

        Raises UserError if it fails or yields anything but pairs of strings.
        """
        with self._convert_errors(f'pairs("{split}")'):
            for number, pair in enumerate(self._problem.pairs(split), 1):
                match pair:
                    case (str(source), str(target)):
                        yield source, target
                    case _:
                        raise self._error(
                            f'pair {number:,} of pairs("{split}") is {pair!r:.80}; '
                            "it must be a source and a target, both str"
                        )

    def description(self, split: str) -> str:
        """Returns the wrapped problem's description.

        Raises UserError if it fails or does not return a non-empty string.
        """
        with self._convert_errors(f'description("{split}")'):
            return self._text(self._problem.description(split), "description")

    def fingerprint(self) -> str:
        """Returns the wrapped problem's fingerprint.

        Raises UserError if it fails or does not return a non-empty string.
        """
        with self._convert_errors("fingerprint()"):
            return self._text(self._problem.fingerprint(), "fingerprint")

    def _class(self) -> type[Problem]:
        """Imports and returns the class."""
        match = _NAME.fullmatch(self.name)
        if match is None:
            raise self._error(
                "write a custom class as MODULE:CLASS, such as my_corpus:MyCorpus"
            )
        module_name, class_name = match.groups()
        with self._convert_errors(f"importing {module_name}"):
            try:
                module = importlib.import_module(module_name)
            except ModuleNotFoundError as error:
                # If another name is missing, an import inside of the module failed.
                if f"{module_name}.".startswith(f"{error.name}."):
                    raise self._error(
                        f"cannot find the module {module_name}; run the command in "
                        "the folder that contains it, or add that folder to PYTHONPATH"
                    ) from None
                raise
        problem_class = getattr(module, class_name, None)
        if not _is_problem(problem_class):
            others = ", ".join(n for n, v in vars(module).items() if _is_problem(v))
            raise self._error(
                f"{module_name} has no subclass of t2t_repro.problems.Problem of this "
                f"name; its subclasses are: {others or 'none'}"
            )
        methods = getattr(problem_class, "__abstractmethods__", ())
        if missing := ", ".join(sorted(methods)):
            raise self._error(f"the class lacks the method {missing}")
        return problem_class

    def _text(self, value: object, method: str) -> str:
        if not isinstance(value, str) or not value:
            raise self._error(
                f"its {method} is {value!r:.80}; return a non-empty string"
            )
        return value

    @contextmanager
    def _convert_errors(self, action: str) -> Iterator[None]:
        """Converts exceptions of user code into a UserError with file and line."""
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise self._error(f"{action} failed: {_summary(error)}") from error

    def _error(self, text: str) -> UserError:
        return UserError(f"problem {self.name}: {text}")


def _is_problem(value: object) -> TypeGuard[type[Problem]]:
    return isinstance(value, type) and issubclass(value, Problem) and value != Problem


def _summary(error: BaseException) -> str:
    """Returns an exception's type, message, and the file and line that raised it."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text
