"""The old home of the method names; they live in `methods`."""

from .methods import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION

__all__ = ["AGENT_METHODS", "CLIENT_METHODS", "PROTOCOL_VERSION"]
