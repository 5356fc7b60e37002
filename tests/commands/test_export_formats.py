"""Exports of every format translate like the command `translate`, where they are moved.

Models have random weights and separate embeddings, so that different sentences have
different translations.
"""

import importlib.util
import shutil
import subprocess
import sys

import keras_hub
import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.serving.exports import (
    CTRANSLATE2,
    FORMATS,
    IDS,
    KERAS_HUB,
    LITERT,
    LIVE_PAGE,
    MARIAN,
    SAVED_MODEL,
    TRANSFORMERS,
)
from t2t_repro.serving.litert_client import LiteRTTranslator
from t2t_repro.system.errors import format_count
from t2t_repro.tokenizers import plain_tokenizer
from t2t_repro.tokenizers.load import load_tokenizer
from tests import in_browser, run_command, tiny
from tests.docs.blocks import blocks
from tests.interop.marian.small_marian import SmallMarian
from tests.runs.directories import provenance
from tests.tokenizers import test_separate_tokenizer

pytestmark = pytest.mark.medium

browser = in_browser.browser
SEPARATE = {"share_vocab": False}
LINES = [source for source, _ in tiny.pairs("test")]
TEXT = "".join(f"{line}\n" for line in LINES)


@pytest.fixture(scope="module")
def model_dir_of(tmp_path_factory):
    """Returns a function that creates a model directory and returns its path."""
    folder = tmp_path_factory.mktemp("models")
    shared = tiny.tokenizer(folder)
    test_separate_tokenizer.write_sides("wordpiece", folder)
    separate = load_tokenizer(folder / "vocab.sides")

    def create(**settings):
        settings["share_embeddings"] = False
        tokenizer = shared if settings.get("share_vocab", True) else separate
        directory = ModelDir(folder / "_".join(["model", *settings]))
        if not directory.exists():
            sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
            search = {"beam_size": 1, "decode_extra_length": 3}
            hparams = HParams(problem="files", **sizes, **search, **settings)
            directory.begin(hparams, provenance(tokenizer), tokenizer)
            sizes = tokenizer.vocab_size, 0.3, tokenizer.target_vocab_size
            variables = named_variables(tiny.random_model(*sizes, **settings))
            weights = {name: each.numpy() for name, each in variables.items()}
            checkpoints.save(directory.checkpoint_dir, 1, weights)
        return directory.path

    return create


def import_small_marian(kind, folder):
    """Returns the model directory of a random model with the format's conventions."""
    small = SmallMarian(size=60)
    write = small.write if kind is MARIAN else small.write_transformers
    write(folder / "original")
    flags = ("--folder", str(folder / "original"), "--model_dir", str(folder / "model"))
    completed = run_command.run("import_marian", *flags)
    assert completed.status == 0, completed.err
    return folder / "model"


def run_python(folder, *arguments):
    """Runs Python next to a moved export, in a process without this package."""
    settings = {"capture_output": True, "encoding": "utf-8", "env": {}}
    command = [sys.executable, *arguments]
    cwd = folder.parents[1]
    return subprocess.run(command, input=TEXT, cwd=cwd, check=False, **settings)


def call_saved_model(folder, _):
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    outputs = signature(text=tf.constant(LINES))["translations"]
    return [text.decode() for text in outputs.numpy()]


def call_ids(folder, _):
    tokenizer = plain_tokenizer.load(folder / "assets.extra" / "tokenizer")
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    rows = plain_tokenizer.pad([tokenizer.encode(line) for line in LINES])
    outputs = signature(inputs=tf.constant(rows))["outputs"]
    return [tokenizer.decode(row) for row in outputs.numpy()]


def call_ctranslate2(folder, _):
    """Runs the page's code in a process without this package."""
    pytest.importorskip("ctranslate2")
    (example,) = (b for b in blocks("python") if "exported_ctranslate2" in b.text)
    loop = "for line in sys.stdin:\n    print(translate(line.rstrip(), 1, 0, 3))\n"
    process = run_python(folder, "-c", f"{example.text}\n{loop}")
    assert process.returncode == 0, process.stderr
    return process.stdout.split("\n")[1:-1]


def call_keras_hub(folder, _):
    task = keras_hub.models.Seq2SeqLM.from_preset(str(folder))
    assert (
        (folder / "README.md").read_text(encoding="utf-8").count("from_preset(FOLDER)")
    )
    task.compile(run_eagerly=True)
    return task.generate(LINES)


def call_litert(folder, _):
    """Runs the client in processes without this package, and in this process."""
    # TensorFlow contains an interpreter, too.
    interpreter = tf.lite.Interpreter(str(folder / LITERT.file))
    client = LiteRTTranslator(folder, interpreter)
    texts = [client.translate(line) for line in LINES]
    process = run_python(folder, "exported_litert/1/litert_client.py")
    if importlib.util.find_spec("ai_edge_litert") is None:
        line = "error: ai-edge-litert is not installed; run pip install ai-edge-litert"
        assert (process.returncode, process.stderr) == (1, f"{line}\n")
        return texts
    assert process.stdout.split("\n")[:-1] == texts, process.stderr
    (example,) = (b for b in blocks("python") if "exported_litert" in b.text)
    process = run_python(folder, "-c", example.text)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("\n") == 1
    return texts


def call_live_page(folder, request):
    page = request.getfixturevalue("browser")
    page.set_script_timeout(300)
    page.get((folder / LIVE_PAGE.file).as_uri())
    script = "transformer.translate(arguments[0]).then(arguments[1])"
    return [page.execute_async_script(script, line)["translation"] for line in LINES]


def call_import_marian(folder, _):
    """Imports the folder again; `test_exports` compares it with the programs' files."""
    model_dir = folder.parent / "model"
    flags = ("--folder", str(folder), "--model_dir", str(model_dir))
    completed = run_command.run("import_marian", *flags)
    assert completed.status == 0, completed.err
    flags = ("--model_dir", str(model_dir))
    translated = run_command.run("translate", *flags, stdin=TEXT.encode())
    return translated.out.split("\n")[:-1]


CALLS = {
    SAVED_MODEL: call_saved_model,
    IDS: call_ids,
    CTRANSLATE2: call_ctranslate2,
    KERAS_HUB: call_keras_hub,
    LITERT: call_litert,
    LIVE_PAGE: call_live_page,
    MARIAN: call_import_marian,
    TRANSFORMERS: call_import_marian,
}


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, {}) for kind in FORMATS),
        *((kind, SEPARATE) for kind in (SAVED_MODEL, IDS, CTRANSLATE2, KERAS_HUB)),
        (LITERT, SEPARATE),
    ],
    ids=lambda each: (
        "-".join(each) or "shared" if isinstance(each, dict) else type(each).__name__
    ),
)
def test_a_moved_export_translates_like_translate(
    kind, settings, model_dir_of, tmp_path, request
):
    local = {"self_attention_radius": 1} if kind.name == "saved_model" else {}
    folder = tmp_path / "exported"
    is_imported = CALLS[kind] is call_import_marian
    if is_imported:
        model_dir = import_small_marian(kind, tmp_path)
    else:
        model_dir = model_dir_of(**local, **settings)
    flags = ("--export_dir", str(folder), "--format", kind.name)
    flags += ("--input", "ids") if kind.takes_ids else ()
    source = ("--model_dir", str(model_dir))
    completed = run_command.run("export", *source, *flags)
    assert completed.status == 0, completed.err
    (checkpoint,) = (model_dir / "checkpoints").glob("step-*")
    assert completed.out == f"exported {checkpoint} to {folder / '1'}\n"
    moved = tmp_path / "moved" / f"exported_{kind.name}" / "1"
    moved.parent.mkdir(parents=True)
    shutil.move(folder / "1", moved)
    assert (moved / kind.file).exists()
    verified = run_command.run("client", "--verify", str(moved))
    files = sum(path.is_file() for path in moved.rglob("*")) - 1  # Without the card.
    assert verified == (0, f"{format_count(files, 'file')} verified\n", "")
    translated = run_command.run("translate", *source, stdin=TEXT.encode())
    expected = translated.out.split("\n")[:-1]
    assert len(set(expected)) >= (2 if is_imported else len(LINES))
    assert CALLS[kind](moved, request) == expected
