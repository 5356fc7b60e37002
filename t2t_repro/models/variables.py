"""Variables of a model by name."""

import keras


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns the model's variables by path, without the name of the model.

    Raises:
        ValueError: Two variables have the same path, or the model has none.
    """
    prefix = f"{model.name}/"
    named = {v.path.removeprefix(prefix): v for v in model.trainable_variables}
    if not named or len(named) != len(model.trainable_variables):
        raise ValueError(f"{model.name} must have variables, with distinct paths")
    return named
