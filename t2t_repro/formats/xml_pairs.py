"""Pairs of XML files, whose root element determines the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.tmx import TmxUnits
from t2t_repro.formats.wmt import WmtDocuments
from t2t_repro.formats.xces import XcesLinks
from t2t_repro.formats.xliff import XliffUnits
from t2t_repro.formats.xml_stream import Handler, local_name, parse
from t2t_repro.system.errors import UserError

_ROOTS: dict[str, Callable[[PairFile], Handler[Pair]]] = {
    "tmx": TmxUnits,
    "xliff": XliffUnits,
    "dataset": WmtDocuments,
    "cesAlign": XcesLinks,
}


def read_xml(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of a TMX, XLIFF, WMT or XCES file.

    Raises UserError if the file is not well-formed or has another root element.
    """
    return parse(file.file, file.path, _Root(file))


class _Root(Handler[Pair]):
    """Replaces itself by the reader of the format at the root element."""

    def __init__(self, file: PairFile) -> None:
        super().__init__()
        self._file = file

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begins the document."""
        make_reader = _ROOTS.get(local_name(name))
        if make_reader is None:
            raise UserError(
                f"{self._file.path}: its root element is {name}; pairs are read from "
                "TMX (tmx), XLIFF (xliff), WMT (dataset) and XCES (cesAlign)"
            )
        reader = make_reader(self._file)
        reader.results = self.results
        reader.parser = self.parser
        self.parser.StartElementHandler = reader.start
        self.parser.EndElementHandler = reader.end
        reader.start(name, attributes)
