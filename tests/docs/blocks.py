"""The code blocks of README and docs, and the commands in them."""

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
    """A fenced block.

    Attributes:
        page: the file, from the root.
        line: of the fence.
        language: what is written behind the fence.
        text: what is in it.
    """

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        """Names the block where a test fails."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A program with its arguments, as a shell would run it.

    Attributes:
        where: the block, or the notebook.
        words: program and arguments, without variables before them.
        stdin: the file that is read, or the text that `echo` writes into it.
        stdout: the file that is written, or "".
    """

    where: str
    words: tuple[str, ...]
    stdin: str | bytes = ""
    stdout: str = ""

    def __str__(self) -> str:
        """Names the command where a test fails."""
        return f"{self.where} {' '.join(self.words)}"


def blocks(*languages: str) -> list[Block]:
    """Returns the blocks of all pages, or those in some languages."""
    found = []
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
                found.append(block)
    return found


def commands() -> list[Command]:
    """Returns the commands of all blocks of bash."""
    return [c for block in blocks("bash") for c in commands_of(block.text, str(block))]


def notebook_commands() -> list[Command]:
    """Returns the commands of the notebooks that are not made of variables."""
    found = []
    for path in sorted((ROOT / "colab").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for line in re.findall(
            r"^#(?: !|     )(python -m t2t_.*)$", text, re.MULTILINE
        ):
            # A variable stands for one word, but for the flags of the data.
            plain = line.replace("{DATA}", "--problem files")
            found += commands_of(re.sub(r"\{\w+\}", "1", plain), path.name)
    return found


def commands_of(text: str, where: str) -> Iterator[Command]:
    """Yields what a shell would run of some lines, one program after the other."""
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
                echoed = token == "|" and words[:1] == ["echo"]
                piped = f"{' '.join(words[1:])}\n".encode() if echoed else ""
                words, files = [], {"<": "", ">": ""}


def spans(path: Path) -> list[str]:
    """Returns what stands between single backquotes in a page, outside of blocks."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return re.findall(r"`([^`\n]+)`", text)


def named_files(path: Path) -> list[str]:
    """Returns the files of the repository that a page names between backquotes."""
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
    """Returns the targets of a page's links that lead into the repository."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return [target for target in found if "://" not in target]
