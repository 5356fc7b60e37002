"""One self-contained HTML page of a model's attention and search.

The page loads nothing from a network. Its texts are untrusted: they are escaped, and
its content security policy allows no script but its own, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from string import Template
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro import __version__
from t2t_repro.analysis.beam_trace import Ids
from t2t_repro.analysis.inspect_translation import Inspection
from t2t_repro.analysis.pair_attention import Weights
from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer

WEIGHT_UNIT = 65_535
"""A weight of 1, as the page's data hold it."""

_ROOM = "t2t_repro.analysis"
_SCRIPTS = ("elements.js", "data.js", "words.js", "heads.js", "beam.js")
# What could end a script element, or a line of a script.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def attention_page(look: Inspection, tokenizer: Tokenizer, model_name: str) -> str:
    """Returns the page of what `look` holds; `tokenizer` is the model's."""
    style = page_part(_ROOM, "attention_page/style.css")
    script = "\n".join(page_part(_ROOM, f"attention_page/{name}") for name in _SCRIPTS)
    values = {
        "title": f"Attention of {model_name}: {look.text}",
        "model": model_name,
        "text": look.text,
        "translation": look.translation,
        "given": " (given)" if look.is_given else "",
        "found": look.found,
        "version": __version__,
    }
    return Template(page_part(_ROOM, "attention_page/page.html")).substitute(
        {name: html.escape(value) for name, value in values.items()},
        notices="".join(f"<p>{html.escape(cut)}.</p>" for cut in look.cuts),
        style=style,
        style_hash=policy_hash(style),
        script=script,
        script_hash=policy_hash(script),
        data=script_json(page_data(look, tokenizer)),
    )


def page_data(look: Inspection, tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns what the page's script reads.

    ``source`` and ``target`` are names of subwords. Each of ``maps`` holds its number
    of layers and heads and, as base64 of little-endian uint16 in units of
    1 / `WEIGHT_UNIT`, weights (layers, heads, queries, keys). ``beam.nodes`` begins
    with the root; every other one names its parent.
    """
    maps = look.attention._asdict()
    return {
        "source": [look.source_names[symbol] for symbol in look.source],
        "target": [look.name(symbol) for symbol in look.target],
        "maps": {kind: _packed(weights) for kind, weights in maps.items()},
        "beam": {
            "size": look.search.beam_size,
            "alpha": look.search.alpha,
            "steps": len(look.beam.steps),
            "nodes": _nodes(look, tokenizer),
        },
    }


def _nodes(look: Inspection, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Makes a tree of the hypotheses: each is a node below its own beginning."""
    best = look.beam.results[0].ids
    results = {each.ids: place for place, each in enumerate(look.beam.results)}
    root = {"parent": None, "step": 0, "place": 0, "name": "", "ended": False}
    nodes: list[dict[str, Any]] = [
        root | {"logProb": 0.0, "score": 0.0, "best": True, "result": None}
    ]
    at: dict[Ids, int] = {(): 0}
    for number, step in enumerate(look.beam.steps, 1):
        for group in (step.alive, step.ended):
            for place, each in enumerate(group):
                at[each.ids] = len(nodes)
                nodes.append(
                    {
                        "parent": at[each.ids[:-1]],
                        "step": number,
                        "place": place,
                        "name": look.name(each.ids[-1]),
                        "ended": each.ids[-1] == EOS_ID,
                        "logProb": round(each.log_prob, 6),
                        "score": round(each.score, 6),
                        "best": best[:number] == each.ids,
                        "result": results.get(each.ids),
                    }
                )
    # With at least one column, although the root lacks ids.
    rows = tf.ragged.constant([[*ids, 0] for ids in at], tf.int32)
    texts = tokenizer.target.decode(rows.to_tensor())
    for node, text in zip(nodes, texts.numpy(), strict=True):
        node["text"] = text.decode()
    return nodes


def _packed(weights: Weights) -> dict[str, Any]:
    """Returns weights (layers, heads, queries, keys) as JSON can hold them."""
    layers, heads = weights.shape[:2]
    values = np.rint(weights * WEIGHT_UNIT).astype("<u2")
    return {
        "layers": layers,
        "heads": heads,
        "weights": base64_text(values.tobytes()),
    }


def page_part(package: str, name: str) -> str:
    """Reads a file of a package, e.g. `attention_page/page.html`."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def script_json(values: dict[str, Any]) -> str:
    """Writes JSON that can stand inside of a script element."""
    return json.dumps(values, ensure_ascii=False).translate(_ESCAPED)


def policy_hash(text: str) -> str:
    """Returns what the page's policy calls a script or a style."""
    return f"'sha256-{base64_text(hashlib.sha256(text.encode()).digest())}'"


def base64_text(contents: bytes) -> str:
    """Encodes bytes as base64 text."""
    return base64.b64encode(contents).decode("ascii")
