"""Figure of the change in BLEU when single attention heads are silenced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from figures import style

if TYPE_CHECKING:
    from t2t_repro.layers.attention import MultiHeadAttention
    from t2t_repro.models.transformer import Transformer

Array = npt.NDArray[np.floating[Any]]


def attentions(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """Returns a model's attention layers by kind, from the first layer to the last."""
    encoder = list(model.encoder.layers_in_order())
    decoder = list(model.decoder.layers_in_order())
    return {
        "encoder self-attention": [layer.self_attention for layer in encoder],
        "decoder self-attention": [layer.self_attention for layer in decoder],
        "decoder to encoder": [layer.cross_attention for layer in decoder],
    }


@contextmanager
def silence(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Silences a head in this context by zeroing its rows of the output projection.

    The output projection adds up the heads (paper section 3.2.2).
    """
    kernel = attention.output_projection.kernel
    before = kernel.numpy()
    without = before.copy()
    without[head * attention.d_v : (head + 1) * attention.d_v] = 0
    kernel.assign(without)
    try:
        yield
    finally:
        kernel.assign(before)


def bleu_without_each(
    model: Transformer, bleu: Callable[[], float], log: Callable[[str], object]
) -> tuple[float, dict[str, Array]]:
    """Measures the change in BLEU when each head is silenced.

    Args:
        model: Model, whose weights are restored.
        bleu: Function that computes the BLEU of the model.
        log: Function that prints a line of progress.

    Returns:
        BLEU of the whole model, and its change in points by kind of attention, float64
        (layers, heads).
    """
    whole = bleu()
    log(f"all heads: BLEU {whole:.2f}")
    changes: dict[str, Array] = {}
    for kind, layers in attentions(model).items():
        values = np.zeros((len(layers), layers[0].num_heads))
        for layer, attention in enumerate(layers):
            for head in range(attention.num_heads):
                with silence(attention, head):
                    values[layer, head] = bleu() - whole
                change = f"{values[layer, head]:+.2f}"
                log(f"{kind}, layer {layer + 1} without head {head + 1}: {change}")
        changes[kind] = values
    return whole, changes


def draw(
    model_dir: Path,
    checkpoint: str,
    pairs: Sequence[tuple[str, str]],
    log: Callable[[str], object],
) -> style.Drawn:
    """Translates with a trained model and draws the figure.

    Args:
        model_dir: Model directory.
        checkpoint: Name of the checkpoint, as for `t2t_repro.translate`.
        pairs: Sentences to translate and their references.
        log: Function that prints a line of progress.
    """
    from t2t_repro.evaluation.bleu import sacre_bleu
    from t2t_repro.fast.parallel_batches import give_each_batch_a_core
    from t2t_repro.translation.build import build_translator
    from t2t_repro.translation.loading import load_models

    give_each_batch_a_core()
    loaded = load_models(model_dir, checkpoint)
    translator = build_translator(loaded)
    sources, references = zip(*pairs, strict=True)

    def bleu() -> float:
        translations = [each.text for each in translator.translate_lines(sources)]
        return sacre_bleu(translations, references).score

    (model,) = loaded.models
    whole, changes = bleu_without_each(model, bleu, log)
    limit = max(float(np.abs(values).max()) for values in changes.values()) or 1.0
    figure, all_axes = style.panels(3, width=2.9, height=2.7)
    for axes, (kind, values) in zip(all_axes, changes.items(), strict=True):
        image = axes.imshow(values, cmap=style.DIVERGING, vmin=-limit, vmax=limit)
        layers, heads = values.shape
        axes.set(title=kind, xlabel="silenced head", ylabel="layer")
        axes.set_xticks(range(heads), [str(n + 1) for n in range(heads)])
        axes.set_yticks(range(layers), [str(n + 1) for n in range(layers)])
        axes.grid(visible=False)
        for layer, head in np.ndindex(layers, heads):
            value = values[layer, head]
            # The text contrasts with the cell, so it does not depend on the page.
            colour = "white" if abs(value) > limit / 2 else "black"
            text = f"{value:+.1f}"
            axes.text(head, layer, text, ha="center", va="center", color=colour)
    figure.colorbar(image, ax=all_axes, label="change of BLEU (points)", shrink=0.8)
    named = {kind: values.round(2).tolist() for kind, values in changes.items()}
    facts = {"bleu": whole, "change": named, "lines": len(pairs)}
    return figure, facts | {"beam_size": loaded.search().beam_size}
