"""One task of `benchmark_decode.py`, alone in its process.

    python decode_worker.py TASK settings.json OPTION

TASK is export, t2t_repro, products, ctranslate2 or plain; OPTION the precision of
t2t_repro (and " xla") and of the products, the compute type of CTranslate2, "" for the
others. The result is one JSON object on standard output.
"""

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import numpy.typing as npt
from benchmarking import peak_memory

from t2t_repro.command_line import cli

Ids = npt.NDArray[np.int32]
FIRST_ID = 3  # Below lie padding, the end, and the unknown.
VOCABULARY = "vocab.model"


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task that the command line names."""
    task, settings, option = sys.argv[1:] if argv is None else argv
    values = json.loads(Path(settings).read_text(encoding="utf-8"))
    print(json.dumps(TASKS[task](Namespace(**values), option)))


def random_inputs(settings: Namespace) -> Ids:
    """Draws sentences: int32 (batches, batch_size, length), each ending in EOS."""
    shape = (settings.batches, settings.batch_size, settings.length)
    ids = np.random.default_rng(settings.seed).integers(
        FIRST_ID, settings.vocab_size, shape, np.int32
    )
    ids[:, :, -1] = 1
    return ids


def random_model(settings: Namespace) -> Any:
    """Returns a model of random weights, the same every time."""
    from t2t_repro.hparams import load
    from t2t_repro.runs.model_dir import build_model

    hparams = load("base").replace(
        d_model=settings.d_model,
        d_ff=4 * settings.d_model,
        num_heads=settings.d_model // 64,
        num_layers=settings.num_layers,
        vocab_size=settings.vocab_size,
        seed=settings.seed,
    )
    return build_model(hparams, settings.vocab_size)


def search_of(settings: Namespace) -> Any:
    """Returns the search: every translation takes `steps` steps."""
    from t2t_repro.decoding.search import Search

    return Search(
        beam_size=settings.beam_size,
        alpha=settings.alpha,
        extra_length=settings.steps - settings.length,
        min_length=settings.steps,
    )


def export(settings: Namespace, _: str) -> dict[str, Any]:
    """Writes the weights as CTranslate2 reads them."""
    from t2t_repro.interop.ctranslate2 import write_ctranslate2
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    work_dir = Path(settings.work_dir)
    letters = np.random.default_rng(settings.seed).integers(97, 123, (40_000, 7))
    words = (bytes(row.tolist()).decode() for row in letters)
    path = work_dir / VOCABULARY
    build_vocabulary("sentencepiece", words, settings.vocab_size, path)
    folder = work_dir / "ctranslate2"
    folder.mkdir()
    write_ctranslate2(random_model(settings), load_tokenizer(path), folder)
    return {"bytes": sum(file.stat().st_size for file in folder.iterdir())}


def t2t_repro(settings: Namespace, option: str) -> dict[str, Any]:
    """Times t2t_repro as `python -m t2t_repro.translate` runs it.

    Args:
        settings: of the benchmark.
        option: the precision; after it " xla" for `--xla`.
    """
    started = time.perf_counter()
    import tensorflow as tf

    from t2t_repro import fast
    from t2t_repro.fast.compiled_search import CompiledSearch
    from t2t_repro.models.precision import precision
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.translation.side_by_side import give_each_batch_a_core, rows_at_once
    from t2t_repro.translation.translator import Translator

    fast.install()
    dtype, _, xla = option.partition(" ")
    give_each_batch_a_core(bool(xla))
    with precision(dtype):
        model = random_model(settings)
    tokenizer = load_tokenizer(Path(settings.work_dir) / VOCABULARY)
    search = search_of(settings)
    for_one = CompiledSearch([model], search) if xla else None
    translator = Translator(model, tokenizer, search, for_one=for_one)
    inputs = random_inputs(settings)
    found: list[Ids] = []

    def translate(batches: Ids) -> None:
        """Takes int32 (batches, rows, length)."""
        ids = batches.reshape(-1, settings.length)
        size = rows_at_once(len(ids), settings.batch_size)
        parts = [tf.constant(ids[n : n + size]) for n in range(0, len(ids), size)]
        found[:] = [ids.numpy()[:, 0] for ids, _ in translator.translate_batches(parts)]

    result = timed(settings, inputs, translate, started)
    if xla:  # It is another search for sentences alone only.
        rows = inputs.reshape(-1, 1, settings.length)[: max(1, settings.checked)]
        batches = translator.translate_batches(map(tf.constant, rows))
        found[:] = [ids.numpy()[:, 0] for ids, _ in batches]
    else:
        translate(inputs)
    np.save(Path(settings.work_dir) / f"t2t_repro_{option}.npy", np.vstack(found))
    return result


def products(settings: Namespace, option: str) -> dict[str, Any]:
    """Times the matrix products of the decoder's steps alone: the limit.

    Cross-attention's keys and values, once per sentence, and the products of
    attention weights are left out. They are prepared as the decoder prepares its own.
    """
    started = time.perf_counter()
    import keras
    import tensorflow as tf

    from t2t_repro.fast.few_rows import multiply, multiply_transposed, prepared
    from t2t_repro.translation.side_by_side import give_each_batch_a_core, rows_at_once

    give_each_batch_a_core()
    d_model, dtype = settings.d_model, tf.as_dtype(option)

    def weights(columns: int, rows: int = d_model) -> Any:
        return keras.Variable(tf.random.normal([rows, columns]), dtype=option)

    # Queries, keys and values of self-attention, and their output; queries and output
    # of cross-attention; both layers of the feed-forward network.
    layers = [
        [
            [weights(d_model) for _ in range(3)],
            *([weights(d_model)] for _ in range(3)),
            [weights(4 * d_model)],
            [weights(d_model, 4 * d_model)],
        ]
        for _ in range(settings.num_layers)
    ]
    table = weights(d_model, settings.vocab_size)
    kernels = [group for layer in layers for group in layer]

    def step(x: Any) -> Any:
        for layer in layers:
            for group in layer:
                x = multiply(x, *group)
                # Of queries, keys and values one goes on.
                x = x[:, :d_model] if len(group) > 1 else x
            # So that nothing overflows in all the steps.
            x /= tf.reduce_max(tf.abs(x))
        logits = multiply_transposed(x, table)
        return x + 0 * tf.reduce_mean(logits)

    @tf.function(input_signature=[tf.TensorSpec([None, d_model], dtype)])
    def steps(x: Any) -> Any:
        with prepared(kernels, [table], tf.shape(x)[0], option):
            for _ in tf.range(settings.steps):
                x = step(x)
        return x

    def run(batches: Ids) -> None:
        rows = batches[..., 0].size
        size = rows_at_once(rows, settings.batch_size)
        sizes = [min(size, rows - n) for n in range(0, rows, size)]
        inputs = [tf.ones([n * settings.beam_size, d_model], dtype) for n in sizes]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(steps, inputs))

    return timed(settings, random_inputs(settings), run, started)


def ctranslate2(settings: Namespace, compute_type: str) -> dict[str, Any]:
    """Times CTranslate2, its threads arranged in both ways; the better one counts."""
    started = time.perf_counter()
    import ctranslate2 as peer

    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.piece_names import piece_names

    work_dir = Path(settings.work_dir)
    names = np.array(piece_names(load_tokenizer(work_dir / VOCABULARY)))
    inputs = random_inputs(settings)
    # It adds the end itself.
    texts = {
        ids.tobytes(): names[ids[:-1]].tolist()
        for ids in inputs.reshape(-1, settings.length)
    }
    cores = len(os.sched_getaffinity(0))
    results = []
    for inter, intra in {(1, cores), (cores, 1)}:
        translator = peer.Translator(
            str(work_dir / "ctranslate2"),
            compute_type=compute_type,
            inter_threads=inter,
            intra_threads=intra,
        )

        def translate(batches: Ids, translator: Any = translator) -> None:
            translator.translate_batch(
                [texts[ids.tobytes()] for ids in batches.reshape(-1, settings.length)],
                beam_size=settings.beam_size,
                length_penalty=settings.alpha,
                min_decoding_length=settings.steps,
                max_decoding_length=settings.steps,
                max_batch_size=settings.batch_size,
            )

        results.append(timed(settings, inputs, translate, started))
    best = {
        work: max(result["tokens_per_second"][work] for result in results)
        for work in results[0]["tokens_per_second"]
    }
    return {
        "version": peer.__version__,
        "tokens_per_second": best,
        "start_seconds": min(result["start_seconds"] for result in results),
        "peak_memory": peak_memory(),
    }


def timed(
    settings: Namespace, inputs: Ids, translate: Callable[[Ids], None], started: float
) -> dict[str, Any]:
    """Times the three kinds of work.

    Returns:
        Tokens per second of each, the seconds from the start of the task to the end
        of the first batch, which is not counted otherwise, and the peak memory.
    """
    translate(inputs[:1])
    start_seconds = time.perf_counter() - started
    translate(inputs[:1, :1])
    works = {
        f"{settings.batches} batches of {settings.batch_size}": inputs[None],
        f"a batch of {settings.batch_size} alone": inputs[:2, None],
        "a sentence alone": inputs[0, : settings.sentences, None, None],
    }
    speeds = {}
    for work, calls in works.items():
        began = time.perf_counter()
        for batches in calls:
            translate(batches)
        tokens = calls[..., 0].size * settings.steps
        speeds[work] = tokens / (time.perf_counter() - began)
    return {
        "tokens_per_second": speeds,
        "start_seconds": start_seconds,
        "peak_memory": peak_memory(),
    }


def plain(settings: Namespace, _: str) -> dict[str, Any]:
    """Compares the first translations with a plain search; see `plain_search.py`."""
    import tensorflow as tf
    from plain_search import log_softmax, plain_search

    model = random_model(settings)
    whole = tf.function(
        lambda inputs, targets: model(inputs, targets)[:, -1],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )
    inputs = random_inputs(settings).reshape(-1, settings.length)[: settings.checked]
    timed_ids = [
        np.load(Path(settings.work_dir) / f"t2t_repro_float32{xla}.npy")
        for xla in ("", " xla")
    ]
    same, same_compiled = 0, 0
    for source, found, compiled in zip(inputs, *timed_ids, strict=False):

        def log_probs(beginnings: list[list[int]], source: Ids = source) -> Any:
            # The last symbol is not read: the model shifts its targets right.
            targets = np.array([[*ids, 0] for ids in beginnings], np.int32)
            return log_softmax(whole(np.tile(source, (len(targets), 1)), targets))

        expected, _score = plain_search(
            log_probs,
            beam_size=settings.beam_size,
            alpha=float(settings.alpha),
            steps=settings.steps,
            min_length=settings.steps,
        )
        same += int(found[: settings.steps].tolist() == expected)
        same_compiled += int(compiled[: settings.steps].tolist() == expected)
    return {"checked": len(inputs), "same": same, "same_compiled": same_compiled}


TASKS: dict[str, Callable[[Namespace, str], dict[str, Any]]] = {
    "export": export,
    "t2t_repro": t2t_repro,
    "products": products,
    "ctranslate2": ctranslate2,
    "plain": plain,
}


if __name__ == "__main__":
    cli.run(main)
