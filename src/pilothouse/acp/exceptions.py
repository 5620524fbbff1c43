"""The old home of `RequestError`; the errors live in `errors`."""

from .errors import RequestError

__all__ = ["RequestError"]
