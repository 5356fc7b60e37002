"""Reader of OpenNMT-tf's model descriptions.

A description is a name in OpenNMT-tf's catalog or a Python file that calls
``opennmt.models.Transformer``. It determines hyper-parameters that do not affect the
variables' shapes, such as the number of heads. The file is parsed, never executed.
"""

import ast
from pathlib import Path
from typing import Any

from t2t_repro.interop.formats.text import own_tables, read_text
from t2t_repro.system.errors import UserError

DESCRIPTION = "model_description.py"
"""Name of the description that OpenNMT-tf writes into the model's folder."""

_TABLES = own_tables(__file__)
_DEFAULTS: dict[str, Any] = _TABLES["arguments"]
_CATALOG: dict[str, dict[str, Any]] = _TABLES["models"]
ENDS_SOURCE = ("ScalingNmtEnDe", "ScalingNmtEnFr")
"""Models whose automatic configuration adds </s> to sources."""

# Activations by the last part of their names, as in tf.nn.relu. GELU needs the full
# name, because opennmt.layers.gelu computes an approximation.
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "tf.nn.gelu": "gelu"}


class Description(dict[str, Any]):
    """Arguments of opennmt.models.Transformer by name.

    Args:
        where: Flag or file of the description, for messages.
        name: Name in the catalog, or None.
        arguments: Arguments that override OpenNMT-tf's defaults.
    """

    def __init__(self, where: str, name: str | None, arguments: dict[str, Any]) -> None:
        super().__init__(_DEFAULTS | arguments)
        self.where = where
        self.name = name

    def hparams(self) -> dict[str, Any]:
        """Returns the hyper-parameters that the variables do not determine.

        Raises:
            UserError: An argument is invalid or not supported.
        """
        position = self["position_encoder_class"]
        positions = {"SinusoidalPositionEncoder": "sinusoid_from_one", None: "none"}
        function = self["ffn_activation"]
        activation = _ACTIVATIONS.get(function) or _ACTIVATIONS.get(_last(function))
        for name, supported in (
            ("ffn_activation", activation is not None),
            ("position_encoder_class", _last(position) in positions),
        ):
            if not supported:
                raise UserError(f"{self.where}: {name}={self[name]} is not supported")
        return {
            "num_heads": self._number("num_heads", int, 1),
            "activation": activation,
            "position": positions[_last(position)],
            "dropout": self._number("dropout", float, 0),
            "attention_dropout": self._number("attention_dropout", float, 0),
            "ffn_dropout": self._number("ffn_dropout", float, 0),
        }

    def _number(self, name: str, kind: type, least: int) -> Any:
        value = self[name]
        allowed = (int, float) if kind is float else (int,)
        if type(value) not in allowed or value < least:
            raise UserError(
                f"{self.where}: {name}={value} must be a number of at least {least}"
            )
        return kind(value)


def _last(value: Any) -> Any:
    return value.split(".")[-1] if isinstance(value, str) else value


def read_description(model: str | None, folder: Path) -> Description:
    """Reads the description of a model.

    Args:
        model: Name in the catalog or path of a Python file; None selects the file in
            the folder.
        folder: Folder of the checkpoint.

    Raises:
        UserError: The description is missing, cannot be parsed, or is not that of a
            Transformer.
    """
    if model in _CATALOG:
        return Description(f"--model {model}", model, _CATALOG[model])
    path = folder / DESCRIPTION if model is None else Path(model)
    if model is not None and path.suffix != ".py":
        raise UserError(
            f"--model {model}: must be {', '.join(_CATALOG)} or a Python file (*.py) "
            "that describes a Transformer"
        )
    if model is None and not path.is_file():
        raise UserError(
            f"{folder} lacks {DESCRIPTION}, which determines the number of heads; give "
            "--model, a name in OpenNMT-tf's catalog (TransformerBase) or the Python "
            "file of the model"
        )
    text = read_text(path)
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        raise UserError(f"{path} is not a valid Python file; correct it") from None
    return _read(path, tree)


def _read(path: Path, tree: ast.Module) -> Description:
    """Returns the arguments of the only call that creates a model."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {_name(call.func).split(".")[-1]: call for call in calls}
    from_catalog = named.get("get_model_from_catalog")
    if from_catalog is not None:
        name = _value(path, from_catalog.args[0]) if from_catalog.args else None
        if name not in _CATALOG:
            raise UserError(f"{path}: the model {name} is not supported")
        return Description(str(path), name, _CATALOG[name])
    transformers = [call for call in calls if _is_transformer(call, tree)]
    if len(transformers) != 1:
        raise UserError(
            f"{path}: expected one call of opennmt.models.Transformer, found "
            f"{len(transformers)}; other models are not supported"
        )
    (call,) = transformers
    arguments = dict(zip(_DEFAULTS, call.args, strict=False))
    arguments |= {each.arg or "**": each.value for each in call.keywords}
    unknown = sorted(arguments.keys() - _DEFAULTS.keys())
    if unknown or len(call.args) > len(_DEFAULTS):
        problem = (
            f"unknown argument {', '.join(unknown)}"
            if unknown
            else (f"more than {len(_DEFAULTS)} positional arguments")
        )
        raise UserError(f"{path}: {problem} in the call of Transformer")
    for side in ("source_inputter", "target_inputter"):
        inputter = arguments.pop(side, None)
        if isinstance(inputter, ast.Call):
            kind = _name(inputter.func).split(".")[-1]
            if kind != "WordEmbedder":
                raise UserError(
                    f"{path}: {side}={kind} is not supported; only WordEmbedder is"
                )
        elif inputter is not None and _value(path, inputter) is not None:
            raise UserError(f"{path}: {side} must be a WordEmbedder")
    values = {name: _value(path, node) for name, node in arguments.items()}
    return Description(str(path), None, values)


def _is_transformer(call: ast.Call, tree: ast.Module) -> bool:
    """Returns whether a call creates a Transformer or initializes a subclass of it."""
    name = _name(call.func)
    if name.split(".")[-1] == "Transformer":
        return True
    if name != "super.__init__":
        return False
    return any(
        call in ast.walk(node)
        and any(_name(base).split(".")[-1] == "Transformer" for base in node.bases)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )


def _name(node: ast.AST) -> str:
    """Returns the dotted name of a node, or "" if it has none.

    Calls inside the name are reduced to the function's name: `super().__init__` gives
    "super.__init__".
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return ""


def _value(path: Path, node: ast.AST) -> Any:
    """Returns the value of a literal, or the dotted name of an attribute.

    Raises UserError for other expressions.
    """
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, RecursionError):
        name = _name(node)
        if isinstance(node, ast.Attribute) and name:
            return name
        line = getattr(node, "lineno", 0)
        raise UserError(
            f"{path}, line {line}: {ast.unparse(node)} is not a constant, and the file "
            "is not executed; replace it with its value"
        ) from None
