"""Collects the attention weights and the beam search of one translation."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.analysis.beam_trace import BeamTrace, Ids, trace_beam
from t2t_repro.analysis.pair_attention import PairAttention, pair_attention
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.generate import make_decoder
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.texts.sentences import MOST_CHARACTERS, SentenceSplitter
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows

MOST_SUBWORDS = 96
"""Maximum number of tokens per side, including EOS.

The size of the page grows with the product of both lengths.
"""

MOST_HYPOTHESES = 32
"""Maximum beam size whose tree a page can show."""


@dataclass(frozen=True)
class Inspection:
    """Attention and beam search of a model for one sentence."""

    text: str  # Source sentence.
    translation: str  # Translation specified by the user, or found by the search.
    is_given: bool  # Whether the user specified the translation.
    source: Ids  # Token ids of the source, ending in EOS.
    target: Ids  # Token ids of the translation, ending in EOS unless truncated.
    attention: PairAttention  # Attention weights of source and target.
    beam: BeamTrace  # Beam search for a translation of the source.
    found: str  # Text of the best hypothesis.
    search: DecodingConfig  # Settings of the beam search.
    source_names: list[str]  # Source vocabulary: the piece of each id.
    names: list[str]  # Target vocabulary: the piece of each id.
    cuts: list[str]  # Messages about truncated text, several sentences, and labels.

    def name(self, token: int) -> str:
        """Returns the piece of a target id, or a placeholder for an unused row."""
        return self.names[token] if token < len(self.names) else f"<{token}>"


def check_sentence(text: str, flag: str) -> None:
    """Checks that the value of a flag is a single sentence.

    Raises UserError if the text is blank, has several lines, or is not valid UTF-8.
    """
    if not text.strip():
        raise UserError(f"{flag} is blank; give a sentence")
    if any(mark in text for mark in "\n\r\0"):
        raise UserError(f"{flag} contains a line break or NUL; give one sentence")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{flag} is not valid UTF-8; give UTF-8 text") from None


def inspect_translation(
    model: Transformer,
    tokenizer: Tokenizer,
    text: str,
    translation: str | None,
    search: DecodingConfig,
    splitter: SentenceSplitter | None = None,
) -> Inspection:
    """Translates a sentence and records attention weights and beam search.

    Only the first `MOST_SUBWORDS` tokens of each side are used.

    Args:
        model: Trained model.
        tokenizer: Tokenizer of the model.
        text: Source sentence.
        translation: Target of the attention weights; None uses the result of the
            search.
        search: Settings of the beam search.
        splitter: Rule by which a text of several sentences is recognized.

    Raises:
        UserError: `text` or `translation` is not a single sentence of valid UTF-8.
    """
    check_sentence(text, "--text")
    cuts = tokenizer.notes([text])
    if splitter is not None and _count_sentences(splitter, text) > 1:
        cuts.append(
            "the model reads the text as one sentence and may translate only a part of "
            "it"
        )
    source = _encode(tokenizer, text, "the text", "translated and shown", cuts)
    decoder = make_decoder(model, search.beam_size)
    beam = trace_beam(decoder, source, search)
    best = beam.results[0].ids
    best_text = tokenizer.target.decode(tf.constant([best]))[0].numpy().decode()
    if translation is None:
        target = best[:MOST_SUBWORDS]
        if len(best) > MOST_SUBWORDS:
            cuts.append(_cut("the translation", len(best), "shown"))
    else:
        check_sentence(translation, "--translation")
        side = "the translation"
        target = _encode(tokenizer.target, translation, side, "shown", cuts)
    return Inspection(
        text=text,
        translation=best_text if translation is None else translation,
        is_given=translation is not None,
        source=source,
        target=target,
        attention=pair_attention(model, source, target),
        beam=beam,
        found=best_text,
        search=search,
        source_names=tokenizer.pieces,
        names=tokenizer.target.pieces,
        cuts=cuts,
    )


def _count_sentences(splitter: SentenceSplitter, text: str) -> int:
    pieces = splitter.sentences(tf.constant([text])).pieces.numpy()
    return sum(1 for piece in pieces if piece)


def _encode(
    tokenizer: Tokenizer, text: str, side: str, use: str, cuts: list[str]
) -> Ids:
    """Encodes a sentence with EOS, truncated to `MOST_SUBWORDS`.

    Appends messages to `cuts` if the sentence is truncated or has unknown tokens.
    """
    ids = tokenizer.encode(tf.constant([text[:MOST_CHARACTERS]]))
    length = int(ids.row_lengths()[0])
    if length > MOST_SUBWORDS:
        cuts.append(_cut(side, length, use))
    kept = cut_rows(ids, MOST_SUBWORDS).to_list()[0]
    if unknown := kept.count(tokenizer.unknown_id):
        cuts.append(f"tokens of {side} that the vocabulary cannot spell: {unknown}")
    return tuple(kept)


def _cut(side: str, length: int, use: str) -> str:
    return f"{side} has {length:,} tokens; only the first {MOST_SUBWORDS} are {use}"
