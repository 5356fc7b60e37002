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
            UserError: An argument is not supported.
        """
        encoder, function = self["position_encoder_class"], str(self["ffn_activation"])
        position = None if encoder is not None else "none"
        if _last(encoder) == "SinusoidalPositionEncoder":
            position = "sinusoid_from_one"
        activation = _ACTIVATIONS.get(function) or _ACTIVATIONS.get(_last(function))
        for name, translated in (
            ("ffn_activation", activation),
            ("position_encoder_class", position),
        ):
            if translated is None:
                raise UserError(f"{self.where}: {name}={self[name]} is not supported")
        equal = ("num_heads", "dropout", "attention_dropout", "ffn_dropout")
        return {
            "activation": activation,
            "position": position,
            **{name: self[name] for name in equal},
        }


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
        return _read(path, ast.parse(text))
    except (ValueError, SyntaxError):
        raise UserError(f"{path} is not a valid Python file; correct it") from None
    except (RecursionError, MemoryError):  # Python's parser raises MemoryError.
        raise UserError(f"{path} is too deeply nested; simplify it") from None


def _read(path: Path, tree: ast.Module) -> Description:
    """Returns the arguments of the only call that creates a model."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {_last(_name(call.func)): call for call in calls}
    from_catalog = named.get("get_model_from_catalog")
    if from_catalog is not None:
        name = str(_value(path, from_catalog.args[0])) if from_catalog.args else ""
        if name not in _CATALOG:
            raise UserError(f"{path}: the model {name} is not supported")
        return Description(str(path), name, _CATALOG[name])
    transformers = [call for call in calls if _last(_name(call.func)) == "Transformer"]
    # The model may also be a subclass that passes the arguments to super().__init__.
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(
            _last(_name(base)) == "Transformer" for base in node.bases
        ):
            inside = [call for call in calls if call in ast.walk(node)]
            transformers += [c for c in inside if _name(c.func) == "super.__init__"]
    if len(transformers) != 1:
        raise UserError(
            f"{path}: expected one call of opennmt.models.Transformer, found "
            f"{len(transformers)}; other models are not supported"
        )
    (call,) = transformers
    surplus = (f"number {n + 1}" for n in range(len(_DEFAULTS), len(call.args)))
    arguments = dict(zip([*_DEFAULTS, *surplus], call.args, strict=False))
    arguments |= {each.arg or "**": each.value for each in call.keywords}
    if unknown := sorted(arguments.keys() - _DEFAULTS.keys()):
        raise UserError(
            f"{path}: unknown argument {', '.join(unknown)} in the call of Transformer"
        )
    for side in ("source_inputter", "target_inputter"):
        inputter = arguments.pop(side, None)
        if isinstance(inputter, ast.Call):
            kind = _last(_name(inputter.func))
            if kind != "WordEmbedder":
                raise UserError(
                    f"{path}: {side}={kind} is not supported; only WordEmbedder is"
                )
        elif inputter is not None and _value(path, inputter) is not None:
            raise UserError(f"{path}: {side} must be a WordEmbedder")
    values = {name: _value(path, node) for name, node in arguments.items()}
    return Description(str(path), None, values)


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
