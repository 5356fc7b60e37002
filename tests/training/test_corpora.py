"""Training on several corpora: kills, replicas, workers, logs and fingerprints.

The trainings also use Adafactor and a moving average of the weights.
"""

import io
import itertools
import json
import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from inject_faults import compare

from t2t_repro import hparams, train
from t2t_repro.batches.mixture import Mixture
from t2t_repro.data.prepared_data import prepare_corpora
from t2t_repro.problems.corpora import JointCorpora, parse_corpora
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.training.corpus_log import CorpusLog
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.step import StepResult
from tests import forks, tiny
from tests.training.test_strategy import free_addresses

SETTINGS = (
    "warmup_steps=100,dropout=0,checkpoint_steps=6,optimizer=adafactor,ema_decay=0.9,"
    "learning_rate_schedule=inverse_sqrt"
)
RUNS = {"whole": 1, "killed": 1, "replicas": 2, "workers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two corpora, of which only the second has validation and test pairs."""
    folder = tmp_path_factory.mktemp("corpora")
    for name in ("general", "domain"):
        tiny.write_corpus(folder / name)
    for split, lang in itertools.product(("val", "test"), ("en", "de")):
        (folder / f"general/{split}.{lang}").unlink()
    for lang in ("en", "de"):
        path = folder / f"general/train.{lang}"
        lines = path.read_text().splitlines(keepends=True)
        lines[3] = "\n"
        path.write_text("".join(lines * 2))
    text = f"{tiny.HPARAMS}data_dir: {folder}/general:1,{folder}/domain:3\n"
    (folder / "set.yaml").write_text(text)
    return folder


def run(folder, name, kill_after=None):
    """Trains on both corpora for twelve steps, without scores.

    If the name is "killed", the shards are written to other folders. With `kill_after`,
    the process kills itself this many seconds after the first checkpoint.
    """
    if kill_after is not None:
        threading.Thread(target=kill, args=(folder, name, kill_after)).start()
    one = ("--strategy", "mirrored", "--replicas", str(RUNS[name]))
    train.main(
        [
            *("--hparams", f"{folder}/set.yaml,{SETTINGS},train_steps=12"),
            *("--model_dir", f"{folder}/{name}"),
            *(one if name != "workers" else ()),
            *(("--shard_dir", f"{folder}/shards") if name == "killed" else ()),
        ]
    )


def kill(folder, name, seconds):
    while not list(Path(folder, name, "checkpoints").glob("step-*")):
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def trained(folder):
    """Runs the trainings; returns the folder and the output of each by name."""
    calls = [(str(folder), name) for name in (*RUNS, "workers")]
    environments = [{}, {}, {}]
    addresses = free_addresses(2)
    for index in (0, 1):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": addresses}, "task": task}
        environments.append({"TF_CONFIG": json.dumps(config)})
    # Sometimes at once, and sometimes after several steps.
    calls[1] += (random.uniform(0, 0.05),)
    done = forks.run(run, *calls, environments=environments)
    statuses = [result.status for result in done]
    assert statuses == [0, -signal.SIGKILL, 0, 0, 0], done
    (resumed,) = forks.run(run, (str(folder), "killed"))
    assert resumed.status == 0, resumed
    return folder, dict(zip(RUNS, (result.out for result in done), strict=False))


def state(folder, name):
    """Returns weights and moments after the last step."""
    checkpoint = list_checkpoints(folder / name / "checkpoints")[-1]
    assert checkpoint.step == 12
    files = [checkpoint.tensors("weights"), checkpoint.tensors("optimizer")]
    return {name: file.read(name) for file in files for name in file.shapes()}


@pytest.mark.medium
def test_a_killed_training_resumes_bit_identically(trained):
    compared, different = compare(*(trained[0] / name for name in ("whole", "killed")))
    assert different == []
    assert compared > 0
    folders = [*(trained[0] / "shards").glob("*/encoded/*/train")]
    assert sorted(path.parts[-4] for path in folders) == ["domain", "general"]


def test_folders_of_shards_need_different_names(tmp_path):
    names = [tiny.write_corpus(tmp_path / parent / "text") for parent in "ab"]
    corpora = parse_corpora(f"{names[0]}:1,{names[1]}:1", "files", None, None)
    with pytest.raises(UserError, match="two folders of --data_dir have the same name"):
        prepare_corpora(
            corpora, hparams.HParams(), print, None, {}, shard_dir=tmp_path / "new"
        )
    assert not (tmp_path / "new").exists()


@pytest.mark.medium
@pytest.mark.parametrize("name", ["replicas", "workers"])
def test_two_replicas_and_two_processes_equal_one_device(trained, name):
    whole, two = (state(trained[0], each) for each in ("whole", name))
    for name, value in whole.items():
        np.testing.assert_allclose(two[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.medium
def test_the_averaged_checkpoint_is_the_moving_average(trained):
    checkpoints = [
        list_checkpoints(trained[0] / "whole/checkpoints")[-1],
        ModelDir(trained[0] / "whole").checkpoint("averaged"),
    ]
    last, averaged = (checkpoint.tensors("weights") for checkpoint in checkpoints)
    total = checkpoints[0].tensors("optimizer")
    for name in averaged.shapes():
        # n = 1 - 0.9^12 after twelve steps.
        expected = total.read(f"ema/{name}") / (1 - 0.9**12)
        np.testing.assert_allclose(averaged.read(name), expected, rtol=1e-5)
        assert not np.array_equal(averaged.read(name), last.read(name))


@pytest.mark.medium
def test_reports_steps_tokens_and_skipped_lines_of_each_corpus(trained):
    folder, out = trained
    lines = out["whole"].splitlines()
    assert any(line.startswith(f"{folder}/domain: 9 steps, ") for line in lines)
    header, *rows = (folder / "whole/corpora_log.tsv").read_text().splitlines()
    assert header.split("\t") == ["step", "corpus", "steps", "loss", "target_tokens"]
    found = [row.split("\t") for row in rows]
    assert [row[:3] for row in found] == [
        ["12", f"{folder}/general", "3"],
        ["12", f"{folder}/domain", "9"],
    ]
    # The mean over all steps in the training log is that of both corpora.
    _, row = (folder / "whole/training_log.tsv").read_text().splitlines()
    mean = (3 * float(found[0][3]) + 9 * float(found[1][3])) / 12
    assert float(row.split("\t")[1]) == pytest.approx(mean, abs=2e-6)
    skipped = (folder / "whole/skipped_pairs.tsv").read_text().splitlines()[1:]
    name = f"train of {folder}/general"
    assert skipped == [f"{name}\t{line}\tempty source" for line in (4, 64)]


@pytest.mark.medium
def test_other_weights_are_rejected_and_the_last_corpus_is_evaluated(trained):
    folder, _ = trained
    model_dir = ModelDir(folder / "whole")
    assert model_dir.problem().data_dir == str((folder / "domain").resolve())
    with pytest.raises(UserError, match=r"data was .*:1:3, is now .*:3:1; .*data"):
        train.main(
            [
                *(
                    "--hparams",
                    f"{folder}/set.yaml,{SETTINGS}",
                    "--model_dir",
                    str(folder / "whole"),
                ),
                *("--data_dir", f"{folder}/general:3,{folder}/domain:1"),
            ]
        )


def test_fingerprint_depends_on_texts_and_weights(folder, tmp_path):
    names = f"{folder}/general:1,{folder}/domain:3"
    shutil.copytree(folder / "domain", tmp_path / "other")
    with (tmp_path / "other/train.de").open("a") as file:
        file.write("mehr\n")
    texts = (names, f"{folder}/general:1,{folder}/domain:4")
    texts += (f"{folder}/domain:1,{folder}/general:3",)
    texts += (f"{folder}/general:1,{tmp_path}/other:3",)
    found = [
        JointCorpora(parse_corpora(text, "files", None, None)).fingerprint()
        for text in (*texts, names)
    ]
    assert len(set(found[:4])) == 4
    assert found[4] == found[0]


def test_a_folder_whose_name_looks_like_a_list_is_one_corpus(tmp_path):
    (tmp_path / "a:1,b:2").mkdir()
    assert parse_corpora(f"{tmp_path}/a:1,b:2", "files", None, None) == ()
    assert parse_corpora("data", "files", None, None) == ()


def test_a_resumed_report_has_the_results_before_the_stop(tmp_path):
    mixture, names = Mixture((5, 5), (1, 3)), ("general", "domain")

    def monitor(folder, start, unreported=()):
        folder.mkdir(exist_ok=True)
        log = CorpusLog(names, mixture, folder, start)
        return Monitor(folder, 6, start, io.StringIO(), unreported, corpora=log)

    whole = monitor(tmp_path / "whole", 0)
    first = monitor(tmp_path / "stopped", 0)
    for step in range(1, 7):
        # Step 2, of the corpus "general", is skipped.
        result = None if step == 2 else StepResult(10.0**step, step, 1.0, 1.0, 1.0)
        whole.record_step(step, result)
        if step == 4:
            first = monitor(tmp_path / "stopped", 3, first.unreported())
        first.record_step(step, result)
    # The corpora of steps 1 to 6: domain, general, domain, domain, domain, general.
    assert (tmp_path / "whole/corpora_log.tsv").read_text().splitlines()[1:] == [
        "6\tgeneral\t1\t1000000.000000\t6",
        "6\tdomain\t4\t27752.500000\t13",
    ]
    for name in ("corpora_log.tsv", "training_log.tsv"):
        whole_rows, rows = (
            [row.split("\t") for row in (tmp_path / run / name).read_text().split("\n")]
            for run in ("whole", "stopped")
        )
        assert [row[:3] + row[4:] for row in rows] == [
            row[:3] + row[4:] for row in whole_rows
        ]


def test_hyper_parameters_keep_the_folders(folder):
    assert hparams.load(f"{folder}/set.yaml").data_dir.endswith("/domain:3")
