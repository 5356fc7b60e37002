"""Commands and code blocks of the README, the pages and the notebooks are correct.

Flags can be parsed, files and links exist, Python blocks run, and so do commands that
work with a small model. `NOT_RUN` lists the other commands with reasons.
"""

import configparser
import importlib
import re
import shutil
import subprocess

import pytest
from serving_harness.running import serve

from t2t_repro import hparams, problems
from tests import forks, run_command, tiny
from tests.docs.blocks import (
    PAGES,
    blocks,
    commands,
    commands_of,
    links,
    named_files,
    notebook_commands,
    spans,
)
from tests.run_command import ROOT

INCLUDED = (
    "{include} ../CHANGELOG.md",
    # tests/docs/test_jobs.py checks these files.
    "{literalinclude} big.sbatch",
    "{literalinclude} datagen.sbatch",
    "{literalinclude} translate_job.yaml",
    "{literalinclude} tfjob.yaml",
)
# `py` marks excerpts of the code, which tests/docs/test_paper_in_code.py checks.
LANGUAGES = {"bash", "py", "python", "yaml", "text", "{toctree}", *INCLUDED}

# Prefixes of commands that these tests do not run, with reasons.
NOT_RUN = {
    "bash tools/quickstart.sh": "takes ten minutes and creates an environment; "
    "tools/check_package.py trains the same model",
    "bash tools/test.sh": "runs this test",
    "python3 -m venv": "creates the environment of this test",
    ". .venv/bin/activate": "activates the environment of this test",
    "pip install": "needs the network; tools/check_package.py installs the package",
    "uv pip compile": "needs the network; tests/test_packaging.py checks the result",
    ".venv-test/bin/python -m pip freeze": "lists the packages of this environment",
    "export TF_CONFIG": "needs several machines",
    "mkdir sample": "is for the sample of the treebank",
    "head -n 3196 train.clean": "needs the sample of the treebank",
    "tail -n 200 train.clean": "needs the sample of the treebank",
    "cp dev.clean": "needs the sample of the treebank",
    "docker compose": "needs Docker",
    "curl -X POST": "test_clients_send_requests_to_a_server sends the same request",
    "pre-commit install": "changes the repository",
    "jupytext --update": "tests/colab compares sources and notebooks",
    "pytest": "runs this test",
    "python exported_litert/": "tests/serving/test_litert.py runs it",
    "python -m tf2onnx": "needs tf2onnx, which is not a dependency",
    "qemu-x86_64": "needs QEMU",
    "mypy": "is run by tools/test.sh",
    "python -m sphinx": "is run by tools/test.sh",
    "python tools/": "tests/tools tests each tool",
    "python -m t2t_repro.import_t2t": "tests/colab runs it",
    "python -m t2t_repro.import_marian": "tests/commands/test_import_marian.py runs it",
    "python -m t2t_repro.import_opennmt": "tests/commands/test_import_opennmt.py "
    "runs it",
    "python -m t2t_repro.clean": "tests/commands/test_clean.py runs it",
    "python -m t2t_repro.serve": "tests/commands/test_serve.py runs it",
    "python -m t2t_repro.client": "test_clients_send_requests_to_a_server runs it",
}
EXPORT = "python -m t2t_repro.export .* --export_dir exported --model_name mymodel$"
PRESET = "python -m t2t_repro.export .* --format keras_hub$"
# Patterns of arguments of other commands that these tests do not run, with reasons.
NOT_RUN_WITH = {
    r"--hparams (base|big)": "needs the corpora of WMT14 and GPUs",
    r"parsing|parseval --gold": "needs a treebank; tests/commands/test_parse.py "
    "trains, parses and scores",
    r"--model_dir imported": "needs an imported model; tests/colab has one",
    r"--model_dir mine": "needs an imported model; tests/commands/"
    "test_import_marian.py trains some",
    r"--input ids": "tests/commands/test_export_ids.py exports ids",
    EXPORT: "the fixture `folder` runs it",
    PRESET: "the fixture `folder` runs it",
    r"--model_dir mymodel --export_dir exported$": "the fixture `folder` exports the "
    "same model with a name",
    r"--format litert": "tests/serving/test_litert.py exports a LiteRT model",
    r"--source_file test.xml": "tests/evaluation/test_test_sets.py reads such files",
    r"--input_file (film|messages|page)": "tests/commands/test_translate_documents.py "
    "translates documents",
    r"train --no-fast": "tests/fast/test_install.py trains with it",
    r"--strategy": "tests/training/test_strategy.py trains on several devices",
    r"--hparams my/set.yaml": "test_sets_are_valid reads it",
    r"reverse": "test_problem_of_the_page_is_trained_and_scored runs it",
}

COMMANDS = commands()
BASH = sorted({str(command): command for command in COMMANDS}.values(), key=str)


def test_pages_contain_blocks_and_commands():
    assert len(PAGES) > 15
    assert len(COMMANDS) > 40
    assert len(blocks("python")) >= 4
    assert len(notebook_commands()) >= 10


def test_every_block_has_a_language():
    assert {block.language for block in blocks()} <= LANGUAGES
    assert not [
        str(b) for b in blocks() if not b.text.strip() and "{" not in b.language
    ]


@pytest.mark.parametrize("command", [*BASH, *notebook_commands()], ids=str)
def test_flags_exist_and_values_are_allowed(command, capsys):
    words = list(command.words)
    if "srun" in words:
        words = words[words.index("python") :]
    if words[:2] == ["python", "-m"] and words[2].startswith("t2t_repro."):
        parser = importlib.import_module(words[2])._parser()
        try:
            args = parser.parse_args(words[3:])
        except SystemExit:
            pytest.fail(capsys.readouterr().err, pytrace=False)
        spec = getattr(args, "hparams", None)
        if spec and spec != "1" and ".yaml" not in spec:
            hparams.load(spec)
        problem = getattr(args, "problem", None)
        assert problem in {None, "1", "reverse:Reverse", *problems.names()}
    elif words[0] in ("python", "bash") and words[1].startswith("tools/"):
        assert (ROOT / words[1]).is_file()
        help_text = help_of(*words[:2])
        for flag in (word for word in words if word.startswith("--")):
            assert re.search(rf"{flag}\b", help_text), flag


def help_of(program, tool):
    if program == "bash":
        result = subprocess.run(
            ["bash", ROOT / tool, "--help"], capture_output=True, text=True, check=True
        )
        return result.stdout
    return run_command.run(tool, "--help").out


@pytest.mark.parametrize("command", BASH, ids=str)
def test_extras_in_pip_commands_exist(command):
    if "pip" in command.words and "install" in command.words:
        parsed = configparser.ConfigParser()
        parsed.read(ROOT / "setup.cfg", encoding="utf-8")
        extras = re.findall(r"^(?:\.|t2t_repro)\[([\w,]+)\]", "\n".join(command.words))
        names = {name for names in extras for name in names.split(",")}
        assert names <= set(parsed["options.extras_require"])


@pytest.mark.parametrize("command", BASH, ids=str)
def test_every_command_is_run_or_has_a_reason(command):
    words = " ".join(command.words)
    begins = any(words.startswith(start) for start in NOT_RUN)
    has = any(re.search(part, words) for part in NOT_RUN_WITH)
    ours = words.startswith("python -m t2t_repro.") or command.words[0] == "echo"
    assert begins or has or ours, f"{command}: add the reason to NOT_RUN"


def test_every_reason_applies_to_a_command():
    lines = [" ".join(command.words) for command in COMMANDS]
    unused = [s for s in NOT_RUN if not any(line.startswith(s) for line in lines)]
    unused += [p for p in NOT_RUN_WITH if not any(re.search(p, x) for x in lines)]
    assert unused == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_flags_in_inline_code_exist(page):
    for span in spans(page):
        words = span.split()
        if match := re.fullmatch(r"python -m t2t_repro\.([a-z]\w*)( .*)?", span):
            parser = importlib.import_module(f"t2t_repro.{match[1]}")._parser()
            flags = parser._option_string_actions
            assert {w for w in words if w.startswith("--")} <= set(flags), span
        if "--hparams" in words[:-1]:
            spec = words[words.index("--hparams") + 1]
            if ".yaml" not in spec and spec.islower():
                hparams.load(spec)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_in_inline_code_exist(page):
    missing = [name for name in named_files(page) if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_link_targets_exist(page):
    missing = [to for to in links(page) if not (page.parent / to).resolve().exists()]
    assert missing == []


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_sets_are_valid(block, tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text(block.text, encoding="utf-8")
    assert hparams.load(str(path)) != hparams.load("base")


def test_shell_lines_are_parsed():
    line = "A=1 python -m x --to 'a b' < in > out && cd there\necho one two | cat -"
    first, cd, echo, cat = commands_of(line, "here")
    assert first.words == ("python", "-m", "x", "--to", "a b")
    assert (first.stdin, first.stdout) == ("in", "out")
    assert (cd.words, echo.words) == (("cd", "there"), ("echo", "one", "two"))
    assert (cat.words, cat.stdin) == (("cat", "-"), b"one two\n")


def write_hparams(folder):
    """Writes the tiny set, with which models of two steps are not scored."""
    path = tiny.write_hparams(folder)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("warmup_steps: 2", "warmup_steps: 3"))


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory):
    """Folder with the files used in the pages: text, corpus, model and export."""
    path = tmp_path_factory.mktemp("pages")
    tiny.write_corpus(path / "mytext")
    write_hparams(path)
    shutil.copytree(trained.model_dir, path / "mymodel")
    for name in ("text.en", "source.en", "target.de", "other.de", "reference.de"):
        (path / name).write_text("one two\nthree\n", encoding="utf-8")
    (path / "terms.tsv").write_text("one\teins\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for pattern in (EXPORT, PRESET):
            (export,) = (c for c in BASH if re.match(pattern, " ".join(c.words)))
            execute(export, path, patch)
    return path


@pytest.fixture(scope="module")
def server(folder):
    """Server of the export."""
    with serve(folder / "exported", "mymodel") as running:
        yield running


def execute(command, folder, monkeypatch):
    """Runs a command of this package in a folder, with a tiny hyper-parameter set."""
    monkeypatch.chdir(folder)
    words = [
        re.sub(r"^(small|tiny)\b", "tiny_files.yaml", word) for word in command.words
    ]
    stdin = command.stdin
    if isinstance(stdin, str):
        stdin = (folder / stdin).read_bytes() if stdin else b""
    module = words[2].removeprefix("t2t_repro.")
    result = run_command.run(module, *words[3:], stdin=stdin)
    assert result.status == 0, result.err
    if command.stdout:
        (folder / command.stdout).write_text(result.out, encoding="utf-8")
    return result


def is_run(command):
    words = " ".join(command.words)
    ours = words.startswith("python -m t2t_repro.")
    excused = any(words.startswith(start) for start in NOT_RUN)
    return ours and not excused and not any(re.search(p, words) for p in NOT_RUN_WITH)


RUN = sorted({c.words: c for c in COMMANDS if is_run(c)}.values(), key=str)


@pytest.mark.medium
@pytest.mark.parametrize(
    "command", [c for c in RUN if "t2t_repro.train" not in c.words], ids=str
)
def test_command_runs(command, folder, tmp_path, monkeypatch):
    work = tmp_path / "copy"
    shutil.copytree(folder, work)
    result = execute(command, work, monkeypatch)
    if "t2t_repro.translate" in command.words and "--nbest" not in command.words:
        output = result.out or (work / "text.de").read_text(encoding="utf-8")
        lines = 1 if isinstance(command.stdin, bytes) else 2
        assert output.count("\n") == lines


@pytest.mark.medium
@pytest.mark.parametrize(
    "command", [c for c in RUN if "t2t_repro.train" in c.words], ids=str
)
def test_training_command_runs_with_a_tiny_set(command, folder, tmp_path, monkeypatch):
    work = tmp_path / "copy"
    shutil.copytree(folder, work)
    shutil.copytree(work / "mytext", work / "general")
    if "--init_from" not in command.words:
        shutil.rmtree(work / "mymodel")
    earlier = set(work.rglob("model.json"))
    words = [*command.words, "--train_steps", "2", "--data_dir", "mytext"]
    execute(type(command)(command.where, tuple(words)), work, monkeypatch)
    (model_dir,) = [path.parent for path in {*work.rglob("model.json")} - earlier]
    assert (model_dir / "checkpoints" / "step-00000002").is_dir()


@pytest.mark.medium
def test_problem_of_the_page_is_trained_and_scored(tmp_path, monkeypatch):
    (block,) = (b for b in blocks("python") if b.text.startswith("# reverse.py\n"))
    (tmp_path / "reverse.py").write_text(block.text, encoding="utf-8")
    write_hparams(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    train, evaluate = (c for c in COMMANDS if "reverse" in " ".join(c.words))
    words = (*train.words, "--train_steps", "2")
    execute(type(train)(train.where, words), tmp_path, monkeypatch)
    assert "reverse:Reverse, test" in execute(evaluate, tmp_path, monkeypatch).out


# tests/commands/test_export_ids.py and tests/serving/test_litert.py run other exports.
@pytest.mark.medium
@pytest.mark.parametrize(
    "block", [b for b in blocks("python") if "exported_" not in b.text], ids=str
)
def test_python_block_runs(block, folder, request):
    # Skips the download of gigabytes, but creates the corpus.
    text = block.text.replace(".download_and_prepare()", "")
    text = text.replace('"tiny"', '"tiny_files.yaml"')
    if "8501" not in text:
        run_python(text, folder)
        return
    port = request.getfixturevalue("server").rest_port
    output = run_python(text.replace("8501", str(port)), folder)
    assert output.count("\n") == 2


def run_python(text, folder):
    result = subprocess.run(
        [forks.python(), "-c", text],
        cwd=folder,
        env={**run_command.os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.medium
def test_clients_send_requests_to_a_server(folder, server, monkeypatch):
    clients = [c for c in COMMANDS if "t2t_repro.client" in c.words]
    # tests/commands/test_export_ids.py translates through an export that takes ids.
    clients = [c for c in clients if "--tokenizer" not in c.words]
    assert clients
    for command in clients:
        port = server.rest_port if "rest" in command.words else server.grpc_port
        words = (*command.words, "--port", str(port))
        client = type(command)(command.where, words, "text.en", "output.de")
        execute(client, folder, monkeypatch)
        lines = 1 if "--verify" in words else 2
        assert (folder / "output.de").read_text().count("\n") == lines
