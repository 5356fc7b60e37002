"""What OpenNMT-tf's description of a model tells that its variables do not.

It is a name of OpenNMT-tf's catalog or a Python file that calls
``opennmt.models.Transformer``. The file is read, never run.
"""

import ast
from pathlib import Path
from typing import Any

from t2t_repro.interop.formats.text import own_tables, read_text
from t2t_repro.system.errors import UserError

DESCRIPTION = "model_description.py"
"""The file that OpenNMT-tf writes into the folder of a training."""

_TABLES = own_tables(__file__)
_DEFAULTS: dict[str, Any] = _TABLES["arguments"]
_CATALOG: dict[str, dict[str, Any]] = _TABLES["models"]
ENDS_SOURCE = ("ScalingNmtEnDe", "ScalingNmtEnFr")
"""Those whose automatic configuration ends a source with </s>."""

# By the last of their names: tf.nn.relu, tf.keras.activations.relu. What
# opennmt.layers.gelu is, is another formula.
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "tf.nn.gelu": "gelu"}


class Description(dict[str, Any]):
    """The arguments of opennmt.models.Transformer by name.

    Args:
        where: for messages.
        name: of the catalog, or None.
        arguments: what is not a default.
    """

    def __init__(self, where: str, name: str | None, arguments: dict[str, Any]) -> None:
        super().__init__(_DEFAULTS | arguments)
        self.where = where
        self.name = name

    def hparams(self) -> dict[str, Any]:
        """Returns the hyper-parameters that only a description tells.

        UserError that names an argument which is not supported here.
        """
        position = self["position_encoder_class"]
        positions = {"SinusoidalPositionEncoder": "sinusoid_from_one", None: "none"}
        activation = self["ffn_activation"]
        known = _ACTIVATIONS.get(activation) or _ACTIVATIONS.get(_last(activation))
        for name, fits in (
            ("ffn_activation", known is not None),
            ("position_encoder_class", _last(position) in positions),
        ):
            if not fits:
                raise UserError(
                    f"{self.where}: {name}={self[name]} is not supported here"
                )
        return {
            "num_heads": self._number("num_heads", int, 1),
            "activation": known,
            "position": positions[_last(position)],
            "dropout": self._number("dropout", float, 0),
            "attention_dropout": self._number("attention_dropout", float, 0),
            "ffn_dropout": self._number("ffn_dropout", float, 0),
        }

    def _number(self, name: str, kind: type, least: int) -> Any:
        value = self[name]
        allowed = (int, float) if kind is float else (int,)
        if type(value) not in allowed or value < least:
            raise UserError(f"{self.where}: {name}={value} must be a number")
        return kind(value)


def _last(value: Any) -> Any:
    return value.split(".")[-1] if isinstance(value, str) else value


def described(given: str | None, folder: Path) -> Description:
    """Finds the description of a model.

    Args:
        given: a name of the catalog, or a Python file; None: the folder's own.
        folder: of the training.

    Raises:
        UserError: there is none, it cannot be read, or is of another kind of model.
    """
    if given in _CATALOG:
        return Description(f"--model {given}", given, _CATALOG[given])
    path = folder / DESCRIPTION if given is None else Path(given)
    if given is not None and path.suffix != ".py":
        raise UserError(
            f"--model {given}: there are {', '.join(_CATALOG)}, and Python files "
            "(*.py) that describe a Transformer"
        )
    if given is None and not path.is_file():
        raise UserError(
            f"{folder} has no {DESCRIPTION}, and its variables do not tell how many "
            "heads the attention has; give --model, a name of OpenNMT-tf's catalog "
            "(TransformerBase) or the Python file of the training"
        )
    text = read_text(path)
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        raise UserError(f"{path} is no Python file; it is damaged") from None
    return _read(path, tree)


def _read(path: Path, tree: ast.Module) -> Description:
    """Finds the one call that makes the model."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {_name(call.func).split(".")[-1]: call for call in calls}
    from_catalog = named.get("get_model_from_catalog")
    if from_catalog is not None:
        name = _value(path, from_catalog.args[0]) if from_catalog.args else None
        if name not in _CATALOG:
            raise UserError(f"{path}: the model {name} is not supported here")
        return Description(str(path), name, _CATALOG[name])
    found = [call for call in calls if _is_transformer(call, tree)]
    if len(found) != 1:
        raise UserError(
            f"{path}: needs one call of opennmt.models.Transformer, and has "
            f"{len(found)}; other models are not supported here"
        )
    (call,) = found
    given = dict(zip(_DEFAULTS, call.args, strict=False))
    given |= {each.arg or "**": each.value for each in call.keywords}
    unknown = sorted(given.keys() - _DEFAULTS.keys())
    if unknown or len(call.args) > len(_DEFAULTS):
        raise UserError(f"{path}: Transformer has no argument {unknown or 'so far'}")
    for side in ("source_inputter", "target_inputter"):
        inputter = given.pop(side, None)
        if isinstance(inputter, ast.Call):
            kind = _name(inputter.func).split(".")[-1]
            if kind != "WordEmbedder":
                raise UserError(f"{path}: {side}={kind} is not supported here")
        elif inputter is not None and _value(path, inputter) is not None:
            raise UserError(f"{path}: {side} is not supported here")
    values = {name: _value(path, node) for name, node in given.items()}
    return Description(str(path), None, values)


def _is_transformer(call: ast.Call, tree: ast.Module) -> bool:
    """Whether a call makes a Transformer: by its name, or as a subclass does."""
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
    """Returns a dotted name, "" where it is none; a call in it counts as its name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return ""


def _value(path: Path, node: ast.AST) -> Any:
    """Returns a plain value, or the name of another; UserError where it is neither."""
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, RecursionError):
        name = _name(node)
        if isinstance(node, ast.Attribute) and name:
            return name
        line = getattr(node, "lineno", 0)
        raise UserError(
            f"{path}, line {line}: {ast.unparse(node)} cannot be told without running "
            "the file; write the value itself there"
        ) from None
