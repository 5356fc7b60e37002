"""What each head is worth: one is silenced at a time, and the test set translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from figures import style

if TYPE_CHECKING:
    from t2t_repro.layers.attention import MultiHeadAttention
    from t2t_repro.models.transformer import Transformer
    from t2t_repro.translation.translator import Translator

Array = npt.NDArray[np.floating[Any]]


def attentions(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """Returns a model's attentions by kind, from the first layer to the last."""
    encoder = list(model.encoder.layers_in_order())
    decoder = list(model.decoder.layers_in_order())
    return {
        "encoder self-attention": [layer.self_attention for layer in encoder],
        "decoder self-attention": [layer.self_attention for layer in decoder],
        "decoder to encoder": [layer.cross_attention for layer in decoder],
    }


@contextmanager
def silenced(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Silences a head in this context: sets its rows of the output projection to 0.

    That projection adds up the heads (paper section 3.2.2).
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
    model: Transformer, bleu: Callable[[], float], tell: Callable[[str], object]
) -> tuple[float, dict[str, Array]]:
    """Measures the change of BLEU when one head is silent; the weights are put back.

    Returns the BLEU of the whole model, and by kind of attention float64 (layers,
    heads), the change in points.
    """
    whole = bleu()
    tell(f"all heads: BLEU {whole:.2f}")
    changes: dict[str, Array] = {}
    for kind, layers in attentions(model).items():
        found = np.zeros((len(layers), layers[0].num_heads))
        for layer, attention in enumerate(layers):
            for head in range(attention.num_heads):
                with silenced(attention, head):
                    found[layer, head] = bleu() - whole
                change = f"{found[layer, head]:+.2f}"
                tell(f"{kind}, layer {layer + 1} without head {head + 1}: {change}")
        changes[kind] = found
    return whole, changes


def scorer(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> Callable[[], float]:
    """Returns a function that translates sentences and gives their BLEU."""
    from t2t_repro.evaluation.bleu import sacre_bleu

    def bleu() -> float:
        found = [each.text for each in translator.translate_lines(sources)]
        return sacre_bleu(found, references).score

    return bleu


def draw(
    model: Transformer, bleu: Callable[[], float], tell: Callable[[str], object]
) -> style.Drawn:
    """Measures and draws the figure; the arguments are `bleu_without_each`'s."""
    whole, changes = bleu_without_each(model, bleu, tell)
    limit = max(float(np.abs(found).max()) for found in changes.values()) or 1.0
    figure, all_axes = style.panels(3, width=2.9, height=2.7)
    for axes, (kind, found) in zip(all_axes, changes.items(), strict=True):
        image = axes.imshow(found, cmap=style.DIVERGING, vmin=-limit, vmax=limit)
        layers, heads = found.shape
        axes.set(title=kind, xlabel="silent head", ylabel="layer")
        axes.set_xticks(range(heads), [str(n + 1) for n in range(heads)])
        axes.set_yticks(range(layers), [str(n + 1) for n in range(layers)])
        axes.grid(visible=False)
        for layer, head in np.ndindex(layers, heads):
            value = found[layer, head]
            # Written on the cell's own colour, whatever the page's.
            colour = "white" if abs(value) > limit / 2 else "black"
            text = f"{value:+.1f}"
            axes.text(head, layer, text, ha="center", va="center", color=colour)
    figure.colorbar(image, ax=all_axes, label="change of BLEU (points)", shrink=0.8)
    named = {kind: found.round(2).tolist() for kind, found in changes.items()}
    return figure, {"bleu": whole, "change": named}
