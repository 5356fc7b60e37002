"""Times the real tensor2tensor 1.15.7 on Multi30k batches and sentences.

The peer of t2t_repro's own timing: the same batches, or the same weights and
sentences, go through tensor2tensor's model, optimizer and beam search, and the
seconds and tokens come back as JSON.

The script stands alone and runs under Python 3.7 with tensorflow 1.15.5 and
tensor2tensor 1.15.7, where t2t_repro cannot be imported; its syntax keeps to that
version. Progress goes to stderr, the result to stdout.

    python tensor2tensor_multi30k.py train --batches batches.npz --steps 600 --json
    python tensor2tensor_multi30k.py translate --weights model.npz --inputs test.npz
        --output hypotheses.npz --json

Arrays of the files, all ids int32 with PAD 0 and EOS 1:

* `--batches`: `inputs_flat` and `targets_flat` (ids,), the batches one after another
  in row order; `inputs_shape` and `targets_shape` (batches, 2), rows and length.
* `--inputs`: `inputs` (sentences, length), each row ending in EOS and then padded.
* both, optional: `target_space_id` (), default 1; `--batches` also `vocab_size` (),
  default 6000.
* `--weights`: `var/NAME` float32 under tensor2tensor's variable names; the embedding
  either as its shards `.../shared/weights_0...` or as one table `.../shared/weights`.
* `--output`: `ids` int32 (sentences, longest), 0-padded, EOS kept; `scores` float32
  (sentences,).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import problem_hparams
from tensor2tensor.models import transformer
from tensor2tensor.utils import learning_rate, optimize, registry, trainer_lib

PAD = 0
EOS = 1
REPORT_EVERY = 50
EMBEDDING = re.compile(r"transformer/symbol_modality_(\d+)_(\d+)/shared/weights")


def main() -> None:
    """Parses the command line, runs one subcommand and prints its result."""
    arguments = parse_arguments()
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_eager_execution()
    result = arguments.run(arguments)
    result["tensorflow"] = tf.VERSION
    result["threads"] = arguments.threads or "TensorFlow's default"
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name}: {json.dumps(value)}")


def parse_arguments() -> argparse.Namespace:
    """Returns the parsed command line."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--hparams_set", default="transformer_base_v1")
    common.add_argument("--num_heads", type=int, default=4)
    common.add_argument(
        "--threads", type=int, default=0, help="intra and inter op; 0: TF's default"
    )
    common.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command")
    commands.required = True

    command = commands.add_parser("train", parents=[common])
    command.add_argument("--batches", required=True)
    command.add_argument("--steps", type=int, required=True)
    command.add_argument("--measure_from", type=int, default=100)
    command.add_argument("--hidden_size", type=int, default=256)
    command.add_argument("--filter_size", type=int, default=1024)
    command.add_argument("--num_layers", type=int, default=3)
    command.add_argument("--warmup_steps", type=int, default=1000)
    command.add_argument("--seed", type=int, default=1)
    command.set_defaults(run=train)

    command = commands.add_parser("translate", parents=[common])
    command.add_argument("--weights", required=True)
    command.add_argument("--inputs", required=True)
    command.add_argument("--output", required=True)
    command.add_argument("--beam_size", type=int, default=4)
    command.add_argument("--alpha", type=float, default=0.6)
    command.add_argument("--extra_length", type=int, default=50)
    command.add_argument("--batch_size", type=int, default=32, help="sentences")
    command.set_defaults(run=translate)
    return parser.parse_args()


def optional_int(arrays: Any, name: str, default: int) -> int:
    """Returns the scalar `name` of an npz file, or the default without it."""
    return int(arrays[name]) if name in arrays.files else default


def sized_hparams(
    arguments: argparse.Namespace,
    hidden_size: int,
    filter_size: int,
    layers: tuple[int, int],
) -> Any:
    """Returns tensor2tensor's hparams set with the sizes put in.

    Args:
      arguments: the command line (`hparams_set`, `num_heads`).
      hidden_size: the paper's d_model.
      filter_size: the paper's d_ff.
      layers: (encoder layers, decoder layers).
    """
    hparams = registry.hparams(arguments.hparams_set)
    hparams.hidden_size = hidden_size
    hparams.filter_size = filter_size
    hparams.num_heads = arguments.num_heads
    hparams.num_hidden_layers = layers[0]
    hparams.num_encoder_layers, hparams.num_decoder_layers = layers
    return hparams


def build_model(hparams: Any, mode: str, vocab_size: int) -> Any:
    """Returns tensor2tensor's Transformer for one shared vocabulary."""
    problem = problem_hparams.test_problem_hparams(vocab_size, vocab_size, hparams)
    hparams.problem_hparams = problem
    hparams.problem = None
    return transformer.Transformer(hparams, mode, problem)


def ids_placeholder(name: str) -> tf.Tensor:
    """Returns an int32 placeholder (batch, length, 1, 1), tensor2tensor's layout."""
    return tf.placeholder(tf.int32, [None, None, 1, 1], name=name)


def session(arguments: argparse.Namespace) -> tf.Session:
    """Returns a session set up as tensor2tensor's own trainer does."""
    config = trainer_lib.create_session_config(
        inter_op_parallelism_threads=arguments.threads,
        intra_op_parallelism_threads=arguments.threads,
    )
    return tf.Session(config=config)


def read_batches(arrays: Any, side: str, count: int) -> list[np.ndarray]:
    """Returns the first `count` batches of one side, each int32 (rows, length)."""
    shapes = arrays[side + "_shape"]
    if len(shapes) < count:
        raise SystemExit(
            f"--batches holds {len(shapes)} batches, --steps asks for {count}"
        )
    ends = np.cumsum(shapes[:, 0].astype(np.int64) * shapes[:, 1])
    flat = arrays[side + "_flat"]
    return [
        flat[ends[i] - shapes[i].prod() : ends[i]].reshape(shapes[i])
        for i in range(count)
    ]


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    """Trains on the given batches and times the steps from `measure_from` on."""
    if not 0 <= arguments.measure_from < arguments.steps:
        raise SystemExit("--measure_from must be from 0 to --steps - 1")
    arrays = np.load(arguments.batches)
    sources = read_batches(arrays, "inputs", arguments.steps)
    references = read_batches(arrays, "targets", arguments.steps)
    tf.set_random_seed(arguments.seed)
    inputs, targets, train_op = training_graph(arguments, arrays)

    losses, curve = [], []
    with session(arguments) as run:
        run.run(tf.global_variables_initializer())
        for step in range(arguments.steps):
            if step == arguments.measure_from:
                started = time.perf_counter()
            feed = {
                inputs: sources[step][:, :, None, None],
                targets: references[step][:, :, None, None],
            }
            losses.append(float(run.run(train_op, feed)))
            if (step + 1) % REPORT_EVERY == 0 or step + 1 == arguments.steps:
                mean = float(np.mean(losses))
                curve.append([step + 1, mean])
                losses = []
                print(f"step {step + 1} loss {mean:.4f}", file=sys.stderr)
        seconds = time.perf_counter() - started

    measured = arguments.steps - arguments.measure_from
    tokens = sum(int((ids != PAD).sum()) for ids in references[-measured:])
    return {
        "command": "train",
        "steps": arguments.steps,
        "measured_steps": measured,
        "seconds": seconds,
        "seconds_per_step": seconds / measured,
        "target_tokens": tokens,
        "tokens_per_second": tokens / seconds,
        "losses": curve,
    }


def training_graph(
    arguments: argparse.Namespace, arrays: Any
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Builds one training step.

    Returns:
      The placeholders of inputs and targets, and the step: a float32 scalar whose
      evaluation updates the weights and gives the loss before the update, in nats
      per target token (label-smoothed cross entropy less the soft target's entropy).
    """
    hparams = sized_hparams(
        arguments,
        arguments.hidden_size,
        arguments.filter_size,
        (arguments.num_layers, arguments.num_layers),
    )
    hparams.learning_rate_warmup_steps = arguments.warmup_steps
    vocab_size = optional_int(arrays, "vocab_size", 6000)
    model = build_model(hparams, tf.estimator.ModeKeys.TRAIN, vocab_size)
    inputs, targets = ids_placeholder("inputs"), ids_placeholder("targets")
    space = optional_int(arrays, "target_space_id", 1)
    _, losses = model(
        {"inputs": inputs, "targets": targets, "target_space_id": tf.constant(space)}
    )
    rate = learning_rate.learning_rate_schedule(hparams)
    step = optimize.optimize(tf.add_n(list(losses.values())), rate, hparams)
    return inputs, targets, step


def read_weights(path: str) -> tuple[dict[str, np.ndarray], str]:
    """Reads the model's variables, with the embedding joined to one table.

    Returns:
      A dict of variable name to float32 array, without optimizer slots and step, and
      the embedding's scope `transformer/symbol_modality_V_H/shared/weights`, under
      which the dict holds the whole table (V, H).
    """
    arrays = np.load(path)
    weights = {
        name[len("var/") :]: arrays[name]
        for name in arrays.files
        if name.startswith("var/transformer/")
    }
    scopes = sorted({m.group(0) for m in map(EMBEDDING.match, weights) if m})
    if len(scopes) != 1:
        raise SystemExit(
            f"{path}: wanted one embedding var/transformer/symbol_modality_V_H/"
            f"shared/weights, found {scopes}"
        )
    scope = scopes[0]
    shards = sorted(
        (name for name in weights if name.startswith(scope + "_")),
        key=lambda name: int(name.rsplit("_", 1)[1]),
    )
    if shards:
        weights[scope] = np.concatenate([weights.pop(name) for name in shards])
    return weights, scope


def infer_sizes(weights: dict[str, np.ndarray]) -> tuple[int, int, tuple[int, int]]:
    """Returns hidden size, filter size and (encoder, decoder) layer counts."""
    body = "transformer/body/"
    hidden, filters = weights[body + "encoder/layer_0/ffn/conv1/kernel"].shape
    encoder, decoder = (
        sum(
            bool(re.match(body + stack + r"/layer_\d+/ffn/conv1/kernel$", name))
            for name in weights
        )
        for stack in ("encoder", "decoder")
    )
    return hidden, filters, (encoder, decoder)


def load_weights(run: tf.Session, weights: dict[str, np.ndarray]) -> None:
    """Assigns every variable of the graph; raises SystemExit on a different set."""
    variables = {variable.op.name: variable for variable in tf.trainable_variables()}
    if set(variables) != set(weights):
        missing, unused = set(variables) - set(weights), set(weights) - set(variables)
        raise SystemExit(
            "--weights do not fit --hparams_set: "
            f"missing {sorted(missing)}, not used {sorted(unused)}"
        )
    for name, variable in variables.items():
        variable.load(weights[name], run)


def cut_batches(inputs: np.ndarray, size: int) -> list[np.ndarray]:
    """Returns `inputs` in batches, each no longer than its longest row.

    Args:
      inputs: int32 (sentences, length), 0-padded.
      size: sentences per batch.
    """
    batches = []
    for start in range(0, len(inputs), size):
        rows = inputs[start : start + size]
        batches.append(rows[:, : int((rows != PAD).any(axis=0).nonzero()[0][-1]) + 1])
    return batches


def hypothesis_length(ids: np.ndarray) -> int:
    """Returns a hypothesis' length up to its first EOS, which counts.

    Args:
      ids: int32 (length,); without EOS, trailing padding is left out.
    """
    ends = (ids == EOS).nonzero()[0]
    if not len(ends):
        ends = (ids != PAD).nonzero()[0][-1:]
    return int(ends[0]) + 1 if len(ends) else 0


def translation_graph(
    arguments: argparse.Namespace,
    weights: dict[str, np.ndarray],
    scope: str,
    space: int,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Builds beam search with tensor2tensor's cache.

    Args:
      arguments: the command line.
      weights: the variables, with the embedding (V, H) under `scope`; replaced there
        by the blocks that tensor2tensor keeps.
      scope: the embedding's name.
      space: the target space id.

    Returns:
      The placeholder of the inputs and a dict of `outputs` int32 (batch, length) and
      `scores` float32 (batch,).
    """
    hparams = sized_hparams(arguments, *infer_sizes(weights))
    hparams.use_target_space_embedding = any(
        "target_space_embedding" in name for name in weights
    )
    table = weights.pop(scope)
    # T2T: contiguous blocks, one row more in the first V % shards of them
    # (layers/modalities.py:get_weights).
    blocks = np.array_split(table, hparams.symbol_modality_num_shards)
    weights.update({f"{scope}_{index}": block for index, block in enumerate(blocks)})
    model = build_model(hparams, tf.estimator.ModeKeys.PREDICT, len(table))
    inputs = ids_placeholder("inputs")
    outputs = model.infer(
        {"inputs": inputs, "target_space_id": tf.constant(space)},
        decode_length=arguments.extra_length,
        beam_size=arguments.beam_size,
        top_beams=1,
        alpha=arguments.alpha,
    )
    return inputs, {"outputs": outputs["outputs"], "scores": outputs["scores"]}


def translate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Translates the sentences with the given weights and times the search.

    The first batch runs once before the clock starts, then all batches are timed.
    """
    arrays = np.load(arguments.inputs)
    batches = cut_batches(arrays["inputs"], arguments.batch_size)
    weights, scope = read_weights(arguments.weights)
    started = time.perf_counter()
    space = optional_int(arrays, "target_space_id", 1)
    inputs, outputs = translation_graph(arguments, weights, scope, space)
    with session(arguments) as run:
        load_weights(run, weights)
        loaded = time.perf_counter()
        run.run(outputs, {inputs: batches[0][:, :, None, None]})
        warm = time.perf_counter()
        results = [
            run.run(outputs, {inputs: batch[:, :, None, None]}) for batch in batches
        ]
        seconds = time.perf_counter() - warm

    rows = [row for result in results for row in result["outputs"]]
    lengths = [hypothesis_length(row) for row in rows]
    ids = np.zeros([len(rows), max(map(len, rows))], np.int32)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
    scores = np.concatenate([result["scores"] for result in results])
    np.savez(arguments.output, ids=ids, scores=scores.astype(np.float32))
    return {
        "command": "translate",
        "sentences": len(rows),
        "start_seconds": loaded - started,
        "first_run_seconds": warm - loaded,
        "seconds": seconds,
        "tokens": sum(lengths),
        "tokens_per_second": sum(lengths) / seconds,
    }


if __name__ == "__main__":
    main()
