"""Streaming of XML in constant memory, without entities of the document's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar
from xml.parsers import expat

from t2t_repro.system.errors import UserError

T = TypeVar("T")
_CHUNK = 1 << 16


class Handler(Generic[T]):
    """Receiver of the events of a document.

    Attributes:
        results: Results that `parse` yields and removes.
        parser: Expat's parser. The handler reads its line number and sets its
            `CharacterDataHandler` where text matters.
    """

    def __init__(self) -> None:
        self.results: list[T] = []
        self.parser: Any = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Called at each start tag."""

    def end(self, name: str) -> None:
        """Called at each end tag."""


def local_name(name: str) -> str:
    """Returns the name of an element or attribute without the namespace's prefix."""
    return name.rpartition(":")[2]


def parse(file: BinaryIO, name: object, handler: Handler[T]) -> Iterator[T]:
    """Yields the results of a handler while it receives the events of a document.

    No external entity is loaded. Memory does not depend on the size of the document.

    Args:
        file: Bytes of the document, in the encoding that it declares.
        name: Name of the file in error messages.
        handler: Receiver of the events.

    Raises:
        UserError: The document is not well-formed, has an unknown encoding, or declares
            an entity, which could expand to any size.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.EntityDeclHandler = _reject_entity(name, "declares the entity {}; remove it")
    # Without the external DTD, expat would drop the unknown entity from the text.
    parser.SkippedEntityHandler = _reject_entity(
        name, "unknown entity &{};, write the character itself"
    )
    handler.parser = parser
    done = False
    while not done:
        chunk = file.read(_CHUNK)
        done = not chunk
        try:
            parser.Parse(chunk, done)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise UserError(
                f"{name}:{error.lineno}: XML error: {reason}; the file is damaged, "
                "incomplete or in another encoding than it declares"
            ) from None
        except (LookupError, ValueError) as error:  # From codecs.
            raise UserError(
                f"{name}: the XML declares an encoding that cannot be read ({error}); "
                "convert the file to UTF-8"
            ) from None
        yield from handler.results
        handler.results.clear()


def _reject_entity(name: object, message: str) -> Callable[..., NoReturn]:
    """Returns a handler that raises UserError with the name of an entity."""

    def reject(entity: str, *_: object) -> NoReturn:
        raise UserError(f"{name}: {message.format(entity)}")

    return reject
