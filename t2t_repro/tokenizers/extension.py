"""Extension of a trained model's vocabulary by words, for `train --vocab extend`.

Every old piece keeps its id and stays usable, so all texts can be restored as before.
A word becomes one piece where the old vocabulary spells it with the same pieces as the
word by itself. Other text keeps its old pieces; in unigram models, its best and second
best spelling may be exchanged if their probabilities differ by less than a percent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.plain_tokenizer import is_alphanumeric, spell_word, split_runs
from t2t_repro.tokenizers.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    read_model,
)
from t2t_repro.tokenizers.separate_tokenizer import (
    SeparateTokenizer,
    join_vocabularies,
)
from t2t_repro.tokenizers.tokenizer import LABEL, Tokenizer
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from t2t_repro.tokenizers.word_pieces import format_file

# Log probability that a new piece gains for each piece that it saves, so that it is
# preferred to the same pieces and to shorter new ones.
_UNIGRAM_GAIN = 0.01
# SentencePiece's mark of a space and this package's escape of it.
_RESERVED = ("\u2581", "\ue000")


@dataclass(frozen=True)
class Extension:
    """Extended vocabulary.

    Attributes:
        tokenizer: Tokenizer, whose new ids follow the old ones.
        source: For each new source id, the ids of the old pieces that spell it.
        target: The same for each new target id.
    """

    tokenizer: Tokenizer
    source: list[list[int]]
    target: list[list[int]]


def read_words(path: Path) -> list[str]:
    """Returns the distinct words in a file, one per line, without blank lines.

    Raises:
        UserError: The file cannot be read, is not UTF-8 or contains no words, or a line
            contains a character that vocabularies reserve.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not valid UTF-8; convert it") from None
    for number, line in enumerate(lines, start=1):
        if any(character in line for character in _RESERVED):
            raise UserError(
                f"{path}:{number}: U+2581 and U+E000 cannot be parts of a new token; "
                "remove the line"
            )
    if not any(map(str.strip, lines)):
        raise UserError(f"{path} contains no tokens; write one per line")
    return [*dict.fromkeys(line.strip() for line in lines if line.strip())]


def select_words(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]], count: int
) -> list[str]:
    """Returns the words that would save the most tokens in a text as single pieces.

    A word is a run of letters and numbers outside of a language label. It saves one
    token less than it has pieces, each time that it occurs. Words that save the same
    number are in the order of their code points.

    Args:
        tokenizer: Tokenizer that splits the words.
        pairs: Sentence pairs of the text.
        count: Largest number of words.
    """
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for pair in pairs:
        for side, line in zip(counts, pair, strict=True):
            runs = split_runs(re.sub(f"^{LABEL}", "", line))
            side.update(run for run in runs if is_alphanumeric(run[0]))
    saved: Counter[str] = Counter()
    for side, each in zip((tokenizer, tokenizer.target), counts, strict=True):
        words = sorted(each)
        lengths = side.encode(tf.constant(words, tf.string)).row_lengths().numpy()
        for word, length in zip(words, lengths, strict=True):
            saved[word] += each[word] * (int(length) - 2)  # EOS is not saved.
    best = sorted(saved, key=lambda word: (-saved[word], word))
    return [word for word in best[:count] if saved[word] > 0]


def extend_vocabulary(tokenizer: Tokenizer, words: Sequence[str]) -> Extension:
    """Returns the vocabulary with one more piece for each word that has several.

    In SentencePiece models, a piece includes the space before the word; other forms of
    the word keep their pieces. Byte-pair encoding also needs a piece for each beginning
    of a word, which texts never use.

    Args:
        tokenizer: Tokenizer of a trained model.
        words: Words, which `read_words` or `select_words` returned.

    Raises:
        UserError: The kind of vocabulary cannot be extended, or a word does not fit it.
    """
    if isinstance(tokenizer, WordPieceTokenizer):
        return _extend_word_pieces(tokenizer, words)
    if isinstance(tokenizer, MarianTokenizer):
        return _extend_marian(tokenizer, words)
    if isinstance(tokenizer, SeparateTokenizer):
        source, target = (
            extend_vocabulary(side, words)
            for side in (tokenizer.source, tokenizer.target)
        )
        contents = join_vocabularies(source.tokenizer, target.tokenizer)
        joined = SeparateTokenizer(contents, tokenizer.file_name)
        return Extension(joined, source.source, target.target)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    model, new = _extend_model(tokenizer.contents, words, tokenizer.file_name)
    spelling = _spell(new, tokenizer)
    extended = SentencePieceTokenizer(model, tokenizer.file_name)
    return Extension(extended, spelling, spelling)


def _extend_word_pieces(
    tokenizer: WordPieceTokenizer, words: Sequence[str]
) -> Extension:
    """Adds words with their end mark, which the longest match prefers."""
    old = tokenizer.pieces
    alphabet = {piece for piece in old if len(piece) == 1}
    new: dict[str, list[int]] = {}
    ids = tokenizer.encode(tf.constant(list(words)))[:, :-1].to_list()
    for word, pieces in zip(words, ids, strict=True):
        if len(split_runs(word)) > 1:
            raise UserError(
                f"the token {word!r:.40} mixes letters or numbers with other "
                f"characters, which {tokenizer.file_name} always separates; list its "
                "parts"
            )
        if len(pieces) > 1:
            new[spell_word(word, alphabet)] = pieces
    contents = format_file([*old, *new])
    extended = WordPieceTokenizer(contents, tokenizer.file_name)
    return Extension(extended, [*new.values()], [*new.values()])


def _extend_marian(tokenizer: MarianTokenizer, words: Sequence[str]) -> Extension:
    """Extends the SentencePiece models and vocabularies of both sides."""
    sides = tokenizer, tokenizer.target
    models: list[bytes] = []
    news: list[dict[str, list[str]]] = []
    for side in sides:
        if side.piece_model is None:
            raise UserError(
                "a vocabulary of subword-nmt cannot be extended, because its merges "
                "are not part of the model; use --vocab keep"
            )
        model, new = _extend_model(side.piece_model, words, tokenizer.file_name)
        models.append(model)
        news.append(new)
    is_shared = tokenizer.target_vocab_size is None
    if is_shared:
        # The model of the word's language spells it with fewer pieces.
        shorter = {
            piece: min((new[piece] for new in news if piece in new), key=len)
            for piece in news[0] | news[1]
        }
        news = [shorter, shorter]
    # A shared vocabulary may have a piece that one of its two models lacks.
    old = [{*side.pieces} for side in sides]
    news = [
        {piece: spelling for piece, spelling in new.items() if piece not in pieces}
        for new, pieces in zip(news, old, strict=True)
    ]
    source, target = (
        [*side.pieces, *new] for side, new in zip(sides, news, strict=True)
    )
    extended = MarianTokenizer.from_pieces(
        models[0],
        models[1],
        source,
        None if is_shared else target,
        labels=tokenizer.has_labels,
        source_start=tokenizer.source_start,
        added=tokenizer.added,
    )
    return Extension(
        extended, _spell(news[0], tokenizer), _spell(news[1], tokenizer.target)
    )


def _spell(new: dict[str, list[str]], side: Tokenizer) -> list[list[int]]:
    """Returns the ids of the old pieces of each new piece."""
    ids = {piece: number for number, piece in enumerate(side.pieces)}
    unknown = side.unknown_id
    assert unknown is not None
    return [[ids.get(each, unknown) for each in pieces] for pieces in new.values()]


def _extend_model(
    contents: bytes, words: Sequence[str], name: str
) -> tuple[bytes, dict[str, list[str]]]:
    """Adds words to a SentencePiece model.

    Returns:
        The model, and the old pieces that spell each new piece.
    """
    library, proto = read_model(contents, name)
    kinds = proto.trainer_spec
    is_bpe = kinds.model_type == kinds.BPE
    if not is_bpe and kinds.model_type != kinds.UNIGRAM:
        raise UserError(
            f"{name}: only vocabularies of byte-pair encoding and unigram models can "
            "be extended; use --vocab keep"
        )
    entries = {each.piece: each for each in proto.pieces}
    lowest = min(each.score for each in proto.pieces)
    new: dict[str, list[str]] = {}
    for word in words:
        texts, pieces = _split(library, word)
        # Byte-pair encoding reaches a word by merging it from left to right. It splits
        # a piece of the type UNUSED again if the rest of the word does not follow.
        for length in range(2 if is_bpe else len(texts), len(texts) + 1):
            piece = "".join(texts[:length])
            if piece not in entries:
                spelling = [each for part in pieces[:length] for each in part]
                lowest -= 1
                score = lowest
                if not is_bpe:
                    ids = map(library.piece_to_id, spelling)
                    score = sum(map(library.get_score, ids))
                    score += _UNIGRAM_GAIN * (len(spelling) - 1)
                entry = proto.pieces.add(piece=piece, score=score)
                entry.type = entry.NORMAL if length == len(texts) else entry.UNUSED
                entries[piece], new[piece] = entry, spelling
            elif piece in new and length == len(texts):
                entries[piece].type = entries[piece].NORMAL
    kinds.vocab_size = len(proto.pieces)
    return proto.SerializeToString(deterministic=True), new


def _split(library: Any, word: str) -> tuple[list[str], list[list[str]]]:
    """Splits a word into pieces of a model.

    Returns:
        The text of each piece, and its pieces: one, or the bytes of a character.
    """
    pieces: list[list[str]] = []
    texts: list[str] = []
    character = b""
    for piece in library.encode(word, out_type=str):
        if not library.is_byte(library.piece_to_id(piece)):
            pieces.append([piece])
            texts.append(piece)
            continue
        if not character:
            pieces.append([])
        pieces[-1].append(piece)
        character += bytes([int(piece[1:-1], 16)])  # For example, <0xE2>.
        with suppress(UnicodeDecodeError):
            texts.append(character.decode())
            character = b""
    return texts, pieces
