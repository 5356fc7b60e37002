"""Trains PyTorch's nn.Transformer on random ids, independently of t2t_repro.

    torch_training.py WORK

WORK is a JSON object, `Work` of `benchmarks/work.py`. The script adds scaled and tied
embeddings, sinusoids and the loss, which nn.Transformer lacks. nn.Transformer also
applies dropout to attention weights and hidden units of the feed-forward networks;
`paper_dropout` disables both. There is no padding mask, so that PyTorch can use its
fastest attention.
"""

import json
import math
import os
import sys

import torch
from torch import nn
from turns import memory, steps


class Model(nn.Module):
    """nn.Transformer with embeddings and logits."""

    def __init__(self, work):
        """Builds the model.

        Args:
            work: Dictionary with the fields of `Work`.
        """
        super().__init__()
        d_model = work["d_model"]
        self.embedding = nn.Embedding(work["vocab_size"], d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        names = ("d_model", "num_heads", "num_layers", "num_layers", "d_ff", "dropout")
        sizes = [work[name] for name in names]
        self.transformer = nn.Transformer(*sizes, batch_first=True)
        if work["paper_dropout"]:
            disable_extra_dropout(self.transformer)
        self.dropout = nn.Dropout(work["dropout"])
        self.register_buffer("signal", sinusoid(work["length"], d_model))
        mask = nn.Transformer.generate_square_subsequent_mask(work["length"])
        self.register_buffer("mask", mask)

    def embed(self, ids):
        """Embeds ids: int64 (batch, length) to float (batch, length, d_model)."""
        scaled = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(scaled + self.signal)

    def forward(self, inputs, targets):
        """Returns the logits: float (batch, length, vocab_size)."""
        shifted = nn.functional.pad(self.embedding(targets)[:, :-1], (0, 0, 1, 0))
        shifted = shifted * self.embedding.embedding_dim**0.5
        hidden = self.transformer(
            self.embed(inputs),
            self.dropout(shifted + self.signal),
            tgt_mask=self.mask,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.T


def disable_extra_dropout(transformer):
    """Disables dropout on attention weights and hidden units, as in the paper."""
    for module in transformer.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            module.dropout.p = 0.0


def sinusoid(length, d_model):
    """Returns the positional encoding: float32 (length, d_model)."""
    count = d_model // 2
    rates = torch.exp(torch.arange(count) * (-math.log(10_000.0) / max(count - 1, 1)))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


def main():
    """Runs the requested training steps."""
    before = memory("VmRSS")
    work = json.loads(sys.argv[1])
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = Model(work)
    adam = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    loss_of = nn.CrossEntropyLoss(
        label_smoothing=work["label_smoothing"], ignore_index=0
    )
    shape = work["batch_size"], work["length"]
    inputs, targets = (torch.randint(2, work["vocab_size"], shape) for _ in range(2))
    is_bfloat16 = work["precision"] == "bfloat16"
    for _ in steps(before):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
            logits = model(inputs, targets)
            loss = loss_of(logits.flatten(0, 1).float(), targets.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        # Training programs read the loss to log it and to detect non-finite steps.
        loss.item()


if __name__ == "__main__":
    main()
