"""Job files for clusters use existing flags of the train command."""

import shlex

import pytest
import yaml

from t2t_repro import datagen, train, translate
from tests.run_command import ROOT

HOW_TO = ROOT / "docs" / "how_to"


def flags_of(words):
    """Parses the flags of `python -m t2t_repro.train` in a list of words."""
    start = words.index("t2t_repro.train")
    assert words[start - 2 : start] == ["python", "-m"]
    return train._parser().parse_args(words[start + 1 :])


def test_kubernetes_job_starts_workers_of_one_training_run():
    job = yaml.safe_load((HOW_TO / "tfjob.yaml").read_text(encoding="utf-8"))
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]
    (container,) = worker["template"]["spec"]["containers"]
    # The operator requires this container name.
    assert (job["kind"], container["name"]) == ("TFJob", "tensorflow")
    args = flags_of(container["command"])
    assert args.strategy == "multi_worker"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = [volume["name"] for volume in worker["template"]["spec"]["volumes"]]
    assert sorted(mounts) == sorted(volumes)
    for folder in (args.model_dir, args.data_dir):
        assert folder.startswith(mounts["shared"] + "/")


def test_slurm_script_starts_one_worker_per_task():
    lines = (HOW_TO / "big.sbatch").read_text(encoding="utf-8").splitlines()
    options = [line.removeprefix("#SBATCH ") for line in lines if "#SBATCH" in line]
    assert {"--nodes=2", "--ntasks-per-node=8", "--gpus-per-node=8"} <= set(options)
    (line,) = [line for line in lines if line.startswith("srun ")]
    assert flags_of(shlex.split(line)).strategy == "multi_worker"


def test_jobs_of_several_parts_have_all_parts():
    lines = (HOW_TO / "datagen.sbatch").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("srun ")]
    words = shlex.split(line.replace("$SLURM_ARRAY_TASK_ID", "7"))
    flags = words[words.index("t2t_repro.datagen") + 1 :]
    args = datagen._parser().parse_args(flags)
    assert f"#SBATCH --array=0-{args.num_shards - 1}" in lines
    assert args.shard_index == 7

    job = yaml.safe_load((HOW_TO / "translate_job.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = [
        word.replace("$(JOB_COMPLETION_INDEX)", "7") for word in container["command"]
    ]
    assert command[:3] == ["python", "-m", "t2t_repro.translate"]
    args = translate._parser().parse_args(command[3:])
    spec = job["spec"]
    assert spec["completions"] == spec["parallelism"] == args.num_shards
    assert (args.shard_index, args.output_file) == (7, "/shared/out.7.de")


@pytest.mark.parametrize(
    "name", ["tfjob.yaml", "big.sbatch", "datagen.sbatch", "translate_job.yaml"]
)
def test_page_includes_the_job_file(name):
    page = (HOW_TO / "devices.md").read_text(encoding="utf-8")
    assert f"{{literalinclude}} {name}" in page
