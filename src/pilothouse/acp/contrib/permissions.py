"""Asking for permission about a tracked tool call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..helpers import is_allowed, text_block, tool_content
from ..schema import PermissionOption, RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate
from .tool_calls import ToolCallTracker

__all__ = [
    "MissingPermissionOptionsError",
    "MissingToolCallError",
    "PermissionBroker",
    "PermissionBrokerError",
    "default_permission_options",
    "is_allowed",
]

Requester = Callable[..., Awaitable[RequestPermissionResponse]]


class PermissionBrokerError(ValueError):
    """The broker lacks something it needs to ask."""


class MissingToolCallError(PermissionBrokerError):
    def __init__(self) -> None:
        super().__init__("tool_call must be provided when no ToolCallTracker is configured")


class MissingPermissionOptionsError(PermissionBrokerError):
    def __init__(self) -> None:
        super().__init__("PermissionBroker requires at least one permission option")


def default_permission_options() -> tuple[PermissionOption, PermissionOption, PermissionOption]:
    """Approve once, approve for the session, reject."""
    return (
        PermissionOption(option_id="approve", name="Approve", kind="allow_once"),
        PermissionOption(option_id="approve_for_session", name="Approve for session", kind="allow_always"),
        PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
    )


class PermissionBroker:
    """Asks the client about tool calls.

    `requester` is a connection's `request_permission`, or anything that takes either those three keywords or one
    `RequestPermissionRequest`.
    """

    def __init__(
        self,
        session_id: str,
        requester: Requester,
        *,
        tracker: ToolCallTracker | None = None,
        default_options: Sequence[PermissionOption] | None = None,
    ) -> None:
        self._session_id = session_id
        self._requester = requester
        self._by_keywords = _takes_keywords(requester)
        self._tracker = tracker
        self._default_options = tuple(default_permission_options() if default_options is None else default_options)

    async def request_for(
        self,
        external_id: str,
        *,
        description: str | None = None,
        options: Sequence[PermissionOption] | None = None,
        content: Sequence[Any] | None = None,
        tool_call: ToolCallUpdate | None = None,
    ) -> RequestPermissionResponse:
        """Ask about a tracked call, or about `tool_call`. Read the answer with `is_allowed`."""
        call = self._tool_call(external_id, tool_call)
        if content is not None:
            call.content = list(content)
        if description:
            call.content = [*(call.content or ()), tool_content(text_block(description))]
        offered = self._offered(options)
        if self._by_keywords:
            return await self._requester(session_id=self._session_id, tool_call=call, options=offered)
        request = RequestPermissionRequest(session_id=self._session_id, tool_call=call, options=offered)
        return await self._requester(request)

    async def is_allowed(self, external_id: str, **request: Any) -> bool:
        """`request_for`, reduced to yes or no by the kind of the chosen option."""
        response = await self.request_for(external_id, **request)
        return is_allowed(response, self._offered(request.get("options")))

    def _tool_call(self, external_id: str, tool_call: ToolCallUpdate | None) -> ToolCallUpdate:
        if tool_call is not None:
            return tool_call.model_copy(deep=True)
        if self._tracker is None:
            raise MissingToolCallError
        return self._tracker.tool_call_model(external_id)

    def _offered(self, options: Sequence[PermissionOption] | None) -> list[PermissionOption]:
        offered = list(self._default_options if options is None else options)
        if not offered:
            raise MissingPermissionOptionsError
        return [option.model_copy() for option in offered]


def _takes_keywords(requester: Requester) -> bool:
    try:
        parameters = inspect.signature(requester).parameters
    except (TypeError, ValueError):
        return False
    return {"session_id", "tool_call", "options"} <= parameters.keys()
