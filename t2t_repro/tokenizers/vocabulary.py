"""Building a vocabulary from text: the paper's two schemes, both without loss."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto
from t2t_repro.tokenizers.tokenizer import (
    EOS_ID,
    PAD_ID,
    SENTENCEPIECE_SUFFIX,
    WORD_PIECE_SUFFIX,
)

SUFFIXES = {"sentencepiece": SENTENCEPIECE_SUFFIX, "wordpiece": WORD_PIECE_SUFFIX}

# Lines that SentencePiece keeps, drawn evenly from all it is given: about a
# quarter of a gigabyte of text, whatever the corpus.
MAX_LINES = 2_000_000
# Longer lines are left out of the training, not of the encoding: the time that the
# choice of word pieces takes is quadratic in a word that fills a line.
_MAX_LINE_BYTES = 16_384
# Rarer characters (1 in 10,000 together) are spelled in bytes: web text has
# thousands of them, each of which would cost a place in the vocabulary.
_CHARACTER_COVERAGE = 0.9999
_UNK_ID = 2

# SentencePiece writes a space as U+2581, so a U+2581 of the text would come back
# as a space. These rules, part of the model, write it with an escape instead:
# U+E000 (for private use) starts one, U+E001 says "E000", U+E002 says "2581".
_ESCAPE_RULES = "2581\tE000 E002\nE000\tE000 E001\n"
_UNESCAPE_RULES = "E000 E002\t2581\nE000 E001\tE000\n"


class VocabularyTooLargeError(UserError):
    """The text holds fewer subwords than were asked for: `largest` at most."""

    def __init__(self, vocab_size: int, largest: int) -> None:
        """Names both sizes."""
        super().__init__(
            f"vocab_size {vocab_size} is too large for this text: "
            f"the largest possible is {largest}"
        )
        self.largest = largest


def build_vocabulary(
    kind: str,
    lines: Iterable[str],
    vocab_size: int,
    path: str | os.PathLike[str],
    whole_tags: bool = False,
) -> None:
    """Builds a vocabulary from text and writes its file, whole or not at all.

    The same lines in the same order give the same bytes. Of a large corpus an even
    sample is used (`MAX_LINES` lines for `sentencepiece`,
    `word_piece_vocabulary.MAX_BYTES` bytes for `wordpiece`).

    Args:
        kind: `sentencepiece` (byte-pair encoding, the paper's English-German) or
            `wordpiece` (tensor2tensor's subwords, the paper's English-French).
        lines: text, one sentence each, both languages together.
        vocab_size: how many ids; `wordpiece` comes within about one percent.
        path: the file, named `*.model` or `*.subwords` after the kind.
        whole_tags: whether a subword may mix letters with other characters, as tags
            such as `/NP` and `PRP$` do; `sentencepiece` alone heeds it.

    Raises:
        UserError: the kind is unknown, the file's name does not suit it, there is no
            text, or `vocab_size` does not suit the text (`VocabularyTooLargeError`
            where a smaller one would).
    """
    path = os.fspath(path)
    if kind not in SUFFIXES:
        raise UserError(
            f"unknown kind of vocabulary {kind!r}; choose one of {', '.join(SUFFIXES)}"
        )
    if not path.endswith(SUFFIXES[kind]):
        raise UserError(f"{path}: a {kind} vocabulary is named *{SUFFIXES[kind]}")
    if kind == "sentencepiece":
        contents = _sentencepiece_model(lines, vocab_size, whole_tags)
    else:
        from t2t_repro.tokenizers.word_piece_vocabulary import build_word_pieces
        from t2t_repro.tokenizers.word_pieces import to_file

        contents = to_file(build_word_pieces(_text_lines(lines), vocab_size))
    write_bytes_atomically(path, contents)


def _sentencepiece_model(
    lines: Iterable[str], vocab_size: int, whole_tags: bool
) -> bytes:
    """Trains byte-pair encoding that gives back exactly the text it was given."""
    import sentencepiece

    model = io.BytesIO()
    failures: list[BaseException] = []
    text = _watched(_text_lines(lines), failures)
    with tempfile.TemporaryDirectory() as directory:
        escape, unescape = Path(directory, "escape"), Path(directory, "unescape")
        escape.write_text(_ESCAPE_RULES, encoding="ascii")
        unescape.write_text(_UNESCAPE_RULES, encoding="ascii")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=text,
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                pad_id=PAD_ID,
                eos_id=EOS_ID,
                unk_id=_UNK_ID,
                bos_id=-1,
                byte_fallback=True,
                character_coverage=_CHARACTER_COVERAGE,
                remove_extra_whitespaces=False,
                split_by_unicode_script=not whole_tags,
                input_sentence_size=MAX_LINES,
                shuffle_input_sentence=True,  # an even sample, from a fixed seed
                max_sentence_length=_MAX_LINE_BYTES,
                num_threads=1,
                minloglevel=2,
                normalization_rule_tsv=str(escape),
                denormalization_rule_tsv=str(unescape),
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            raise _reason(str(error), vocab_size) from error
    return _without_paths(model.getvalue())


def _without_paths(model: bytes) -> bytes:
    """Removes the names of the rules' files; the rules themselves are compiled in."""
    proto = model_proto(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    proto.denormalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString(deterministic=True)


def _reason(message: str, vocab_size: int) -> UserError:
    """Says what SentencePiece's error means for whoever chose `vocab_size`."""
    if found := re.search(r"Vocabulary size too high .* value <= (\d+)", message):
        return VocabularyTooLargeError(vocab_size, int(found[1]))
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return UserError(
            f"vocab_size {vocab_size} is too small for this text: it has to hold 256 "
            f"bytes and every common character, {found[1]} entries in all"
        )
    return UserError(
        f"SentencePiece could not build a vocabulary of {vocab_size}: {message}"
    )


def _watched(lines: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """Notes the exception of a line, which SentencePiece turns into one of its own."""
    try:
        yield from lines
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _text_lines(lines: Iterable[str]) -> Iterator[str]:
    """Leaves out blank lines and those of more than `_MAX_LINE_BYTES` characters."""
    empty = True
    for line in lines:
        if line.strip() and len(line) <= _MAX_LINE_BYTES:
            empty = False
            yield line
    if empty:
        raise UserError(
            "there is no text to build a vocabulary from: every line is empty or of "
            f"more than {_MAX_LINE_BYTES:,} characters"
        )
