"""All that is shown of one sentence's translation: attention and search."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.analysis.beam_trace import BeamTrace, Ids, trace_beam
from t2t_repro.analysis.pair_attention import PairAttention, pair_attention
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.generate import decoder_of
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MOST_CHARACTERS

MOST_SUBWORDS = 96
"""Of either side, EOS counted: the page grows with the product of both."""

MOST_HYPOTHESES = 32
"""The largest beam whose tree is shown."""


@dataclass(frozen=True)
class Inspection:
    """What a model did with one sentence."""

    text: str  # The sentence.
    translation: str  # The given one, or the model's own.
    is_given: bool  # Whether it was given.
    source: Ids  # The sentence's ids, ending in EOS.
    target: Ids  # The translation's ids; EOS is missing where it was cut.
    attention: PairAttention  # The weights of this pair.
    beam: BeamTrace  # The model's own search for a translation of the sentence.
    found: str  # The text of the search's result.
    search: DecodingConfig  # How it was searched.
    source_names: list[str]  # The vocabulary's name of every id of the source.
    names: list[str]  # And of the target.
    cuts: list[str]  # What was left out, a sentence each.

    def name(self, symbol: int) -> str:
        """Returns an id's piece; rows that only fill the table up have none."""
        return self.names[symbol] if symbol < len(self.names) else f"<{symbol}>"


def check_sentence(text: str, flag: str) -> None:
    """Raises UserError if what a flag gives is blank, several lines, or not UTF-8."""
    if not text.strip():
        raise UserError(f"{flag} is blank; give a sentence")
    if any(mark in text for mark in "\n\r\0"):
        raise UserError(f"{flag} holds a line break or a NUL; give one sentence")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{flag} is not valid UTF-8") from None


def inspect_translation(
    model: Transformer,
    tokenizer: Tokenizer,
    text: str,
    translation: str | None,
    search: DecodingConfig,
) -> Inspection:
    """Translates a sentence and keeps what the model attended to on the way.

    Of a long text the first `MOST_SUBWORDS` are used. The attention is that of
    `translation`, or of the model's own if None. What is no sentence is a UserError.
    """
    check_sentence(text, "--text")
    cuts: list[str] = []
    source = _encoded(tokenizer, text, "the text", cuts)
    decoder = decoder_of(model, search.beam_size)
    beam = trace_beam(decoder, source, search)
    best = beam.results[0].ids
    found = tokenizer.target.decode(tf.constant([best]))[0].numpy().decode()
    if translation is None:
        target = best[:MOST_SUBWORDS]
        if len(best) > MOST_SUBWORDS:
            cuts.append(_cut("the translation", len(best)))
    else:
        check_sentence(translation, "--translation")
        target = _encoded(tokenizer.target, translation, "the translation", cuts)
    return Inspection(
        text=text,
        translation=found if translation is None else translation,
        is_given=translation is not None,
        source=source,
        target=target,
        attention=pair_attention(model, source, target),
        beam=beam,
        found=found,
        search=search,
        source_names=tokenizer.pieces,
        names=tokenizer.target.pieces,
        cuts=cuts,
    )


def _encoded(tokenizer: Tokenizer, text: str, what: str, cuts: list[str]) -> Ids:
    """Encodes a sentence, cut to `MOST_SUBWORDS` with EOS."""
    ids = tokenizer.encode(tf.constant([text[:MOST_CHARACTERS]]))
    length = int(ids.row_lengths()[0])
    if length > MOST_SUBWORDS:
        cuts.append(_cut(what, length))
    return tuple(cut_rows(ids, MOST_SUBWORDS).to_list()[0])


def _cut(what: str, length: int) -> str:
    return f"{what} has {length:,} subwords; the first {MOST_SUBWORDS} are shown"
