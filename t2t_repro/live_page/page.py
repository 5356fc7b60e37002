"""Creates the live page, which contains a model and translates in the browser."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from string import Template

from t2t_repro import __version__
from t2t_repro.analysis.page import base64_text, page_part, policy_hash, script_json
from t2t_repro.hparams import HParams
from t2t_repro.live_page.model_data import live_config, live_tokenizer, pack_weights
from t2t_repro.models.transformer import Transformer

_ROOM, _SHARED = "t2t_repro.live_page", "t2t_repro.analysis"
# Scripts of the model, in the order of the paper.
RUNTIME = (
    *("weights.js", "rows.js"),
    *("character_map.js", "byte_pairs.js", "unigram.js", "sentencepiece.js"),
    *("subword_encoder.js", "marian_side.js", "tokenizer.js", "embedding.js"),
    *("attention.js", "feed_forward.js", "add_and_norm.js", "encoder.js", "decoder.js"),
    *("transformer.js", "candidates.js", "beam_search.js", "translator.js"),
    "worker.js",
)
# Scripts that both pages use.
_SHARED_SCRIPTS = ("elements.js", "arcs.js", "tree.js")
_FIGURES = (
    *("frame.js", "math.js", "matrix.js", "arcs.js", "bars.js", "curves.js"),
    *("search_tree.js", "hops.js", "figure_one.js"),
)
MOST_OFFERED = 5
"""Maximum number of examples among which the reader chooses."""

_STYLES = ("style.css", "figures.css", "essay.css")
# Sections of the essay, in the order of the paper.
_ESSAY = (
    *("01_why", "02_vectors", "03_lookup", "04_scaling", "05_heads", "06_positions"),
    *("07_block", "08_masks", "09_words", "10_training", "11_cost", "12_questions"),
)
_ESSAY_SCRIPTS = (
    *("essay.js", "experiments.js", "attention_figures.js", "model_figures.js"),
    "output_figures.js",
)
_VIEWS = (
    "elements.js",
    *(f"figures/{name}" for name in _FIGURES),
    *("session.js", "translate_view.js", "architecture_view.js"),
    *("attention_view.js", "what_if_view.js", "rotation_view.js", "formulas_view.js"),
    *(f"essay/{name}" for name in _ESSAY_SCRIPTS),
    "start.js",
)


def live_page(
    model: Transformer,
    hparams: HParams,
    vocabulary: bytes,
    file_name: str,
    model_name: str,
    examples: Sequence[str],
    trained_on: str,
) -> str:
    """Returns the HTML page of a model.

    Args:
        model: Built model.
        hparams: Hyper-parameters of the model; they also determine the beam size and
            the length penalty.
        vocabulary: Bytes of the vocabulary file.
        file_name: Name of the vocabulary file, ending in `.model` or `.subwords`.
        model_name: Name of the model, which the page displays.
        examples: Sentences for the page's experiments. The page offers the first five
            and translates the first one initially. Without examples it asks for one.
        trained_on: Sentence about the model's training data.

    Raises:
        UserError: The page does not support the model, or the model is too large.
    """
    config = live_config(hparams)
    index, weights = pack_weights(model)
    style = page_part(_SHARED, "attention_page/style.css")
    style += "".join(page_part(_ROOM, f"views/{name}") for name in _STYLES)
    runtime = live_runtime()
    views = [page_part(_ROOM, f"views/{name}") for name in _VIEWS]
    shared = (page_part(_SHARED, f"attention_page/{name}") for name in _SHARED_SCRIPTS)
    script = "\n".join([*shared, *views])
    data = {
        "config": config,
        "tokenizer": live_tokenizer(vocabulary, file_name),
        "index": index,
        "sentences": list(examples),
        "weights": base64_text(weights),
    }
    return Template(page_part(_ROOM, "views/page.html")).substitute(
        model=html.escape(model_name),
        example=html.escape(examples[0] if examples else ""),
        examples="".join(map(_example_button, examples[:MOST_OFFERED])),
        trained_on=html.escape(trained_on),
        essay="".join(page_part(_ROOM, f"essay/{name}.html") for name in _ESSAY),
        version=__version__,
        weight_bits=8 * len(weights) // sum(math.prod(shape) for _, shape in index),
        style=style,
        style_hash=policy_hash(style),
        runtime=runtime,
        runtime_hash=policy_hash(runtime),
        script=script,
        script_hash=policy_hash(script),
        model_data=script_json(data),
    )


def _example_button(sentence: str) -> str:
    text = html.escape(sentence)
    return f'<li><button type="button" dir="auto">{text}</button></li>'


def live_runtime() -> str:
    """Returns the JavaScript of the model, which also runs outside a browser."""
    return "\n".join(page_part(_ROOM, f"runtime/{name}") for name in RUNTIME)
