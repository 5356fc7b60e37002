"""Beam search algorithms, one class each."""

from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm
from t2t_repro.decoding.algorithms.marian import MarianSearch
from t2t_repro.decoding.algorithms.opennmt import OpenNMTSearch
from t2t_repro.decoding.algorithms.t2t import T2TSearch
from t2t_repro.decoding.algorithms.transformers import TransformersSearch


def algorithm_class(name: str) -> type[SearchAlgorithm]:
    """Returns the class of an algorithm.

    Args:
        name: "t2t", "marian", "transformers" or "opennmt".

    Raises:
        ValueError: The name is unknown.
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
    return classes[name]
