"""Creates a self-contained HTML page of a model's attention and beam search.

The page makes no network requests. All texts are untrusted and therefore escaped, and
the content security policy allows only the page's own script, by hash.
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
"""Integer that represents a weight of 1 in the page's data."""

_ROOM = "t2t_repro.analysis"
_SCRIPTS = (
    *("elements.js", "data.js", "arcs.js", "words.js", "heads.js"),
    *("tree.js", "beam.js"),
)
# Characters that could end a script element or a line of a script.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def attention_page(
    inspection: Inspection, tokenizer: Tokenizer, model_name: str
) -> str:
    """Returns the HTML page of an inspected translation."""
    style = page_part(_ROOM, "attention_page/style.css")
    script = "\n".join(page_part(_ROOM, f"attention_page/{name}") for name in _SCRIPTS)
    values = {
        "title": f"Attention of {model_name}: {inspection.text}",
        "model": model_name,
        "text": inspection.text,
        "translation": inspection.translation,
        "given": " (given)" if inspection.is_given else "",
        "found": inspection.found,
        "version": __version__,
    }
    return Template(page_part(_ROOM, "attention_page/page.html")).substitute(
        {name: html.escape(value) for name, value in values.items()},
        notices="".join(f"<p>{html.escape(cut)}.</p>" for cut in inspection.cuts),
        style=style,
        style_hash=policy_hash(style),
        script=script,
        script_hash=policy_hash(script),
        data=script_json(page_data(inspection, tokenizer)),
    )


def page_data(inspection: Inspection, tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the data for the page's script.

    ``source`` and ``target`` are lists of pieces. Each of ``maps`` contains the numbers
    of layers and heads, and the weights (layers, heads, queries, keys) as base64 of
    little-endian uint16 in units of 1 / `WEIGHT_UNIT`. ``beam.nodes`` is a list of tree
    nodes; the first is the root and all others contain the index of their parent.
    """
    maps = inspection.attention._asdict()
    return {
        "source": [inspection.source_names[token] for token in inspection.source],
        "target": [inspection.name(token) for token in inspection.target],
        "maps": {kind: _pack_weights(weights) for kind, weights in maps.items()},
        "beam": {
            "size": inspection.search.beam_size,
            "alpha": inspection.search.alpha,
            "steps": len(inspection.beam.steps),
            "nodes": _nodes(inspection, tokenizer),
        },
    }


def _nodes(inspection: Inspection, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Returns a tree of the hypotheses; the parent of a node has one token fewer."""
    best = inspection.beam.results[0].ids
    results = {each.ids: rank for rank, each in enumerate(inspection.beam.results)}
    root = {"parent": None, "step": 0, "place": 0, "name": "", "ended": False}
    nodes: list[dict[str, Any]] = [
        root | {"logProb": 0.0, "score": 0.0, "best": True, "result": None}
    ]
    indices: dict[Ids, int] = {(): 0}
    for number, step in enumerate(inspection.beam.steps, 1):
        for group in (step.alive, step.ended):
            for rank, each in enumerate(group):
                indices[each.ids] = len(nodes)
                nodes.append(
                    {
                        "parent": indices[each.ids[:-1]],
                        "step": number,
                        "place": rank,
                        "name": inspection.name(each.ids[-1]),
                        "ended": each.ids[-1] == EOS_ID,
                        "logProb": round(each.log_prob, 6),
                        "score": round(each.score, 6),
                        "best": best[:number] == each.ids,
                        "result": results.get(each.ids),
                    }
                )
    # Append PAD, because the root has no ids and `decode` needs at least one column.
    rows = tf.ragged.constant([[*ids, 0] for ids in indices], tf.int32)
    texts = tokenizer.target.decode(rows.to_tensor())
    for node, text in zip(nodes, texts.numpy(), strict=True):
        node["text"] = text.decode()
    return nodes


def _pack_weights(weights: Weights) -> dict[str, Any]:
    """Returns weights (layers, heads, queries, keys) in a JSON-compatible format."""
    layers, heads = weights.shape[:2]
    values = np.rint(weights * WEIGHT_UNIT).astype("<u2")
    return {"layers": layers, "heads": heads, "weights": base64_text(values.tobytes())}


def page_part(package: str, name: str) -> str:
    """Returns the text of a file in a package, e.g. `attention_page/page.html`."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def script_json(values: dict[str, Any]) -> str:
    """Formats values as JSON that is safe inside a script element."""
    return json.dumps(values, ensure_ascii=False).translate(_ESCAPED)


def policy_hash(text: str) -> str:
    """Returns the hash source of a script or style for a content security policy."""
    return f"'sha256-{base64_text(hashlib.sha256(text.encode()).digest())}'"


def base64_text(contents: bytes) -> str:
    """Encodes bytes as base64 text."""
    return base64.b64encode(contents).decode("ascii")
