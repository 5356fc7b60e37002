"""Beam search algorithms, one class each."""

from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm
from t2t_repro.decoding.algorithms.marian import MarianSearch
from t2t_repro.decoding.algorithms.opennmt import OpenNMTSearch
from t2t_repro.decoding.algorithms.t2t import BatchWideT2TSearch, T2TSearch
from t2t_repro.decoding.algorithms.transformers import TransformersSearch


def algorithm_class(
    name: str, tensor2tensor_rules: bool = False
) -> type[SearchAlgorithm]:
    """Returns the class of an algorithm.

    Args:
        name: "t2t", "marian", "transformers" or "opennmt".
        tensor2tensor_rules: Returns `BatchWideT2TSearch`, the form of "t2t" that
            treats a batch exactly as tensor2tensor does.

    Raises:
        ValueError: The name is unknown, or `tensor2tensor_rules` is combined with an
            algorithm other than "t2t".
    """
    classes: dict[str, type[SearchAlgorithm]] = {
        "t2t": T2TSearch,
        "marian": MarianSearch,
        "transformers": TransformersSearch,
        "opennmt": OpenNMTSearch,
    }
    # A list makes names of other types unknown instead of unhashable.
    if name not in [*classes]:
        raise ValueError(f"algorithm is {name!r}, must be one of {', '.join(classes)}")
    if not tensor2tensor_rules:
        return classes[name]
    if name != "t2t":
        raise ValueError(f"tensor2tensor_rules requires algorithm t2t, not {name}")
    return BatchWideT2TSearch
