"""Code blocks and commands of the README, the pages and the notebooks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.run_command import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_PUNCTUATION = {"|", "||", "&&", ";", "<", ">", ">>"}


@dataclass(frozen=True)
class Block:
    """Fenced code block of a page.

    Attributes:
        page: Path of the page, relative to the repository.
        line: Line number of the opening fence.
        language: Text after the opening fence.
        text: Contents of the block.
    """

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        """Returns the location of the block, for test ids."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A program with its arguments in a shell line.

    Attributes:
        where: Location of the block, or name of the notebook.
        words: Program and arguments, without preceding variable assignments.
        stdin: Name of the input file, or text piped from `echo`.
        stdout: Name of the output file, or "".
    """

    where: str
    words: tuple[str, ...]
    stdin: str | bytes = ""
    stdout: str = ""

    def __str__(self) -> str:
        """Returns the location and the command, for test ids."""
        return f"{self.where} {' '.join(self.words)}"


def blocks(*languages: str) -> list[Block]:
    """Returns the blocks of all pages, optionally only those in some languages."""
    result = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            indent = len(match["indent"])
            lines = [line[indent:] for line in match["text"].splitlines()]
            block = Block(
                page.relative_to(ROOT).as_posix(),
                text[: match.start()].count("\n") + 1,
                match["language"].strip(),
                "\n".join(lines),
            )
            if not languages or block.language in languages:
                result.append(block)
    return result


def commands() -> list[Command]:
    """Returns the commands of all bash blocks."""
    return [c for block in blocks("bash") for c in commands_of(block.text, str(block))]


def notebook_commands() -> list[Command]:
    """Returns the t2t_repro commands in the notebooks."""
    result = []
    for path in sorted((ROOT / "colab").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for line in re.findall(
            r"^#(?: !|     )(python -m t2t_.*)$", text, re.MULTILINE
        ):
            # Variables are single words, except for DATA, which contains flags.
            plain = line.replace("{DATA}", "--problem files")
            result += commands_of(re.sub(r"\{\w+\}", "1", plain), path.name)
    return result


def commands_of(text: str, where: str) -> Iterator[Command]:
    """Yields the commands that a shell would run for some lines."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        files = {"<": "", ">": ""}
        piped: str | bytes = ""
        tokens = iter([*lexer, ";"])
        for token in tokens:
            if token in files:
                files[token] = next(tokens)
            elif token not in _PUNCTUATION:
                words.append(token)
            else:
                while words and _ASSIGNMENT.match(words[0]):
                    words.pop(0)
                if words:
                    yield Command(where, tuple(words), files["<"] or piped, files[">"])
                is_echo = token == "|" and words[:1] == ["echo"]
                piped = f"{' '.join(words[1:])}\n".encode() if is_echo else ""
                words, files = [], {"<": "", ">": ""}


def spans(path: Path) -> list[str]:
    """Returns the inline code of a page."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return re.findall(r"`([^`\n]+)`", text)


def named_files(path: Path) -> list[str]:
    """Returns the paths of repository files in the inline code of a page."""
    roots = "t2t_repro|tools|docs|tests|configs|colab"
    pattern = re.compile(rf"(?:{roots})/[\w./-]*")
    return [
        match[0]
        for span in spans(path)
        for word in span.split()
        if (match := pattern.match(word))
        and not {"*", "NAME"} & set(re.split(r"([*]|NAME)", word))
    ]


def links(path: Path) -> list[str]:
    """Returns the targets of a page's links to files of the repository."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return [target for target in targets if "://" not in target]
