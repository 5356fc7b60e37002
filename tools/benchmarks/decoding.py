"""Workloads of the search benchmarks and the tasks that they time.

A request is the name of a workload (`make_workloads`). `settings` are the benchmark's
flags, the folder `work_dir`, and the program's `precision`, `xla` or `compute_type`.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flags import add_flags

from benchmarks.in_turn import Contender, in_turn
from benchmarks.report import SPEED, Result, add_process, format_value, ratios, say
from t2t_repro.command_line import cli

if TYPE_CHECKING:
    from t2t_repro.models.searcher import Searcher

Ids = npt.NDArray[np.int32]
FIRST_ID = 3  # After PAD, EOS and the unknown token.
VOCABULARY = "vocab.model"
BOUNDS = "int8_bounds.json"
WARM_UP = 60.0  # Seconds after which a search is certainly compiled.
BEGIN = ("the first batch", "the first sentence")
SENTENCE = "one sentence"


def random_inputs(settings: Namespace) -> Ids:
    """Draws sentences that end in EOS: int32 (batches, batch_size, length)."""
    shape = (settings.batches, settings.batch_size, settings.length)
    ids = np.random.default_rng(settings.seed).integers(
        FIRST_ID, settings.vocab_size, shape, np.int32
    )
    ids[:, :, -1] = 1
    return ids


def make_workloads(settings: Namespace) -> dict[str, Ids]:
    """Returns the workloads by name: int32 (calls, batches, rows, length) each.

    The warm-up workloads of `BEGIN` come first.
    """
    inputs = random_inputs(settings)
    sentences = inputs.reshape(-1, settings.length)

    def calls(size: int, count: int) -> Ids:
        """Divides up to `count` sentences into calls with a batch of `size` each."""
        count = min(count, len(sentences)) // size
        return sentences[: count * size].reshape(count, 1, size, settings.length)

    parallel = {f"{settings.batches} batches of {settings.batch_size}": inputs[None]}
    return {
        BEGIN[0]: inputs[None, :1],
        BEGIN[1]: calls(1, 1),
        **(parallel if settings.batches > 1 else {}),
        f"batch of {settings.batch_size}": inputs[:2, None],
        **{work: calls(n, max(n, 4)) for work, n in small_works(settings).items()},
        SENTENCE: calls(1, settings.sentences),
    }


def small_works(settings: Namespace) -> dict[str, int]:
    """Returns the workloads with batches of the sizes in `small_batches`, if given.

    Sizes that are not below `batch_size` are left out.
    """
    sizes = getattr(settings, "small_batches", ())
    return {f"batch of {n}": n for n in sizes if n < settings.batch_size}


def check_flags(
    parser: cli.ArgumentParser, argv: Sequence[str] | None, vocab_size: int
) -> Namespace:
    """Adds the flags of the search benchmarks, parses all and checks the sizes."""
    count = cli.int_range(1)
    add_flags(
        parser,
        ("d_model", count, 512, "width of the model; heads of 64, d_ff = 4 d_model"),
        ("num_layers", count, 6, "layers of the encoder and of the decoder"),
        ("vocab_size", count, vocab_size, "size of the vocabulary, including padding"),
        ("length", count, 32, "tokens per sentence, including EOS"),
        ("steps", count, 52, "tokens per translation"),
        ("batch_size", count, 32, "sentences per batch"),
        ("sentences", count, 4, "sentences that are translated one at a time"),
        ("beam_size", count, 4, "hypotheses per sentence"),
        ("rounds", count, 3, "turns per program"),
        ("seed", count, 1, "random seed of the weights and sentences"),
    )
    args: Namespace = parser.parse_args(argv)
    if args.steps < args.length:
        parser.error("--steps must be at least --length")
    if args.d_model % 64:
        parser.error("--d_model must be a multiple of 64")
    return args


def time_workloads(
    settings: Namespace,
    contenders: Sequence[Contender],
    tables: Result,
    title: str,
    pairs: Sequence[tuple[str, str]],
    large_only: Collection[str] = (),
    for_few: Mapping[str, tuple[Contender, int]] = MappingProxyType({}),
) -> Iterator[tuple[str, str, Result]]:
    """Times the workloads in all programs, with one process alive at a time.

    Args:
        settings: Flags of the benchmark.
        contenders: Programs to time.
        tables: Result tables; gets one with a column per workload, in target tokens
            per second, and one with ratios of speeds.
        title: Title of the first table.
        pairs: Pairs of rows whose ratios are computed.
        large_only: Names of programs that skip the small batches.
        for_few: For some program names, the process that translates up to a number of
            sentences at once in place of the program's own process, and this number.

    Yields:
        Program name, workload name and answer.
    """
    works, small = make_workloads(settings), small_works(settings)
    folder = Path(settings.work_dir)
    table = tables.setdefault(title, {})
    for _, each in product(range(settings.rounds), contenders):
        skipped = {*BEGIN, *(small if each.name in large_only else ())}
        timed_works = [work for work in works if work not in skipped]
        few, most = for_few.get(each.name, (each, 0))
        by_few = [w for w in timed_works if works[w][0, ..., 0].size <= most]
        by_each = [work for work in timed_works if work not in by_few]
        answers = chain.from_iterable(
            # The first search of each size takes longer.
            in_turn(
                [c], [part], folder, begin=[*BEGIN, *(w for w in small if w in part)]
            )
            for c, part in ((each, by_each), (few, by_few))
            if part
        )
        for name, work, answer in answers:
            row = table.setdefault(name, {})
            speed = works[work][..., 0].size * settings.steps / answer["seconds"]
            row.setdefault(work, []).append(speed)
            add_process(row, answer)
            say(f"  {name}, {work}: {format_value(speed)} {SPEED}")
            tables[f"{title}: ratios"] = ratios(table, pairs, works)
            yield name, work, answer


def search_in_turn(settings: Namespace, search: Callable[[Ids], Any]) -> None:
    """Runs `search` on the workload of each request and answers with its results.

    Args:
        settings: Flags of the benchmark.
        search: Function of int32 (batches, rows, length); its results become the
            answer's `ids`.
    """
    # The import redirects standard output, so only a worker may import the module.
    from benchmarks.peers.turns import turns

    works = make_workloads(settings)
    for work, answer in turns():
        answer["ids"] = [search(batches) for batches in works[work]]


def random_model(settings: Namespace) -> Any:
    """Returns a model with random weights that depend only on the seed."""
    from t2t_repro.hparams import load
    from t2t_repro.runs.model_dir import build_model

    hparams = load("base").replace(
        d_model=settings.d_model,
        d_ff=4 * settings.d_model,
        num_heads=settings.d_model // 64,
        num_layers=settings.num_layers,
        num_decoder_layers=getattr(settings, "num_decoder_layers", None),
        vocab_size=settings.vocab_size,
        seed=settings.seed,
    )
    return build_model(hparams, settings.vocab_size)


def write_model(settings: Namespace, for_ctranslate2: bool) -> None:
    """Writes a vocabulary, activation ranges for int8, and a CTranslate2 model.

    Raises UserError if `for_ctranslate2` is set and CTranslate2 is not installed.
    """
    import tensorflow as tf

    from t2t_repro import fast
    from t2t_repro.fast.range_observer import RangeObserver
    from t2t_repro.interop.ctranslate2 import write_ctranslate2
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.translation.translator import Translator

    work_dir = Path(settings.work_dir)
    write_vocabulary(work_dir, settings.vocab_size, settings.seed)
    tokenizer = load_tokenizer(work_dir / VOCABULARY)
    model = random_model(settings)
    if for_ctranslate2:
        folder = work_dir / "ctranslate2"
        folder.mkdir()
        write_ctranslate2(model, tokenizer, folder)
    fast.install("CPU")
    with RangeObserver(model) as observer:
        translator = Translator(model, tokenizer, make_search(settings))
        inputs = random_inputs(settings)[0, : settings.sentences]
        translator.translate_ids(tf.constant(inputs))
    (work_dir / BOUNDS).write_text(json.dumps(observer.bounds(1.0)), encoding="utf-8")


def write_vocabulary(folder: Path, vocab_size: int, seed: int) -> None:
    """Writes a vocabulary of random words."""
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    letters = np.random.default_rng(seed).integers(97, 123, (40_000, 7))
    words = (bytes(row.tolist()).decode() for row in letters)
    build_vocabulary("sentencepiece", words, vocab_size, folder / VOCABULARY)


def make_search(settings: Namespace) -> Any:
    """Returns a search configuration in which all translations have `steps` tokens."""
    from t2t_repro.decoding.config import DecodingConfig

    longer, steps = settings.steps - settings.length, settings.steps
    return DecodingConfig(settings.beam_size, settings.alpha, longer, min_length=steps)


def t2t_repro(fields: Mapping[str, Any]) -> None:
    """Translates as `python -m t2t_repro.translate` does."""
    settings = Namespace(**fields)
    from t2t_repro.fast.parallel_batches import give_each_batch_a_core
    from t2t_repro.fast.quantization import ActivationRange, quantize_model
    from t2t_repro.fast.searchers import fastest_searcher
    from t2t_repro.fast.thresholds import SECONDS_THAT_PAY
    from t2t_repro.models.precision import precision
    from t2t_repro.tokenizers.load import load_tokenizer

    # None: as on a terminal, where a thread compiles after some sentences.
    compile_after = {None: SECONDS_THAT_PAY, True: 0.0, False: None}[settings.xla]
    give_each_batch_a_core(compile_after is not None)
    is_int8 = settings.precision == "int8"
    with precision("float32" if is_int8 else settings.precision):
        model = random_model(settings)
    work_dir = Path(settings.work_dir)
    if is_int8:
        bounds = json.loads((work_dir / BOUNDS).read_text(encoding="utf-8"))
        ranges = {name: ActivationRange(*each) for name, each in bounds.items()}
        quantize_model(model, ranges)
    tokenizer = load_tokenizer(work_dir / VOCABULARY)
    search = make_search(settings)
    searcher = fastest_searcher([model], tokenizer, search, compile_after)
    search_batches_in_turn(settings, searcher)


def search_batches_in_turn(settings: Namespace, searcher: Searcher) -> None:
    """Translates the workload of each request; answers with the ids of all outputs.

    If the searcher compiles in a thread, the first request for a few sentences waits
    for it.
    """
    import tensorflow as tf

    from t2t_repro.fast.searchers import CompiledSearcher
    from t2t_repro.models.searcher import EncodedBatch

    def translate(batches: Ids) -> list[list[int]]:
        ids, most = batches.reshape(-1, settings.length), settings.batch_size
        if isinstance(searcher, CompiledSearcher):
            rows = searcher.rows_of_few(len(ids), most)
            for _ in range(2):  # The first time does not count.
                searcher.add(rows, settings.length, WARM_UP)
            searcher.wait()
        size = searcher.batch_size([settings.length] * len(ids), most, False)
        parts = [
            EncodedBatch(tf.constant(ids[n : n + size]))
            for n in range(0, len(ids), size)
        ]
        best = [ids.numpy()[:, 0] for ids, _ in searcher.search_all(parts, most)]
        return [row.tolist() for rows in best for row in rows]

    search_in_turn(settings, translate)
