"""Status codes of errors in gRPC and HTTP."""

from enum import IntEnum
from http import HTTPStatus


class Code(IntEnum):
    """Status codes shared by gRPC and TensorFlow."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    INTERNAL = 13
    UNAVAILABLE = 14


HTTP = {
    Code.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    Code.DEADLINE_EXCEEDED: HTTPStatus.GATEWAY_TIMEOUT,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    Code.FAILED_PRECONDITION: HTTPStatus.PRECONDITION_FAILED,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


class StatusError(Exception):
    """Error response to a request, with a `code` and a `message`."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> StatusError:
    """Returns the error of an invalid request."""
    return StatusError(Code.INVALID_ARGUMENT, message)


def failed(message: str) -> StatusError:
    """Returns the error of a request that the model cannot run."""
    return StatusError(Code.FAILED_PRECONDITION, message)
