"""Tests of the configuration files for TensorFlow Serving."""

from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from t2t_repro.serving import server_files
from t2t_repro.serving.server_files import (
    FILES,
    check_model_name,
    default_model_name,
    write_server_files,
)
from t2t_repro.system.errors import UserError


def test_tensorflow_serving_can_parse_the_configuration(tmp_path):
    assert write_server_files(tmp_path, "en-de.v2") == []
    text = (tmp_path / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("en-de.v2", "/models/en-de.v2")
    assert model.model_platform == "tensorflow"


def test_compose_binds_the_ports_to_localhost(tmp_path):
    write_server_files(tmp_path, "small")
    services = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]
    (service,) = services.values()
    assert service["image"] == server_files.IMAGE
    assert service["volumes"] == [".:/models/small:ro"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    for flag in service["command"]:
        name, _, value = flag.partition("=")
        if name.endswith("_file"):
            assert (tmp_path / Path(value).relative_to("/models/small")).exists()


def test_existing_files_are_kept(tmp_path):
    write_server_files(tmp_path, "small")
    changed = tmp_path / "batching_parameters.txt"
    changed.write_text("max_batch_size { value: 8 }\n")
    (tmp_path / "compose.yaml").unlink()
    existing = write_server_files(tmp_path, "small")
    assert existing == ["models.config", "batching_parameters.txt"]
    assert changed.read_text() == "max_batch_size { value: 8 }\n"
    assert (tmp_path / "compose.yaml").exists()


@pytest.mark.parametrize("other", ["smal", "small2", "large"])
def test_rejects_files_that_name_another_model(tmp_path, other):
    write_server_files(tmp_path, "small")
    with pytest.raises(UserError, match=f"does not name the model {other};"):
        write_server_files(tmp_path, other)
    assert {path.name for path in tmp_path.iterdir()} == FILES.keys()


@pytest.mark.parametrize("name", ["", "a b", "../x", ".hidden", "a/b", "é", 'a"b'])
def test_rejects_names_that_are_invalid_in_a_url(name):
    with pytest.raises(UserError, match="--model_name"):
        check_model_name(name)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("my model", "my_model"),
        (".x-1", "x-1"),
        ("en-de.v2", "en-de.v2"),
        ("é", "model"),
    ],
)
def test_default_model_name_is_that_of_the_folder(tmp_path, folder, name):
    assert check_model_name(default_model_name(tmp_path / folder)) == name
