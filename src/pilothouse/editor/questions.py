"""What hubs ask of the editor: under ids that the editor has seen of no other hub, and withdrawn with the hub. No I/O.

Rules a change must not break: what one hub asked is never answered to another; a command that was started in a terminal
of the editor is not left running when nobody is there any more who would end it.
"""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from ..acp.jsonrpc import Message, RequestId, encode_error, encode_notification, encode_result
from ..acp.methods import CANCEL_REQUEST
from ..acp.peer import Peer, Response
from .requests import object_of

__all__ = ["Question", "Questions"]

CREATE, RELEASE = "terminal/create", "terminal/release"


class Question:
    """One question. `id` is its id at the hub, `number` that at the editor."""

    __slots__ = ("id", "is_withdrawn", "number", "session_id")

    def __init__(self, question_id: RequestId, session_id: Any = None) -> None:
        self.id = question_id
        self.number: RequestId = None
        self.session_id = session_id
        """Whose terminal is asked for; None in all other questions."""
        self.is_withdrawn = False


class Questions:
    """The questions that are open at the editor, and the terminals that it has open for a hub."""

    def __init__(self) -> None:
        self._editor: Peer[Question] = Peer()
        self._open: dict[RequestId, Question] = {}
        self._terminals: dict[tuple[str, str], None] = {}
        self.receive = self._editor.receive
        """What a line of the editor means."""

    def ask(self, message: Message) -> bytes:
        """A hub asks; what goes to the editor."""
        params = None if isinstance(message.params, UnsetType) else message.params
        question = Question(None if isinstance(message.id, UnsetType) else message.id)
        if message.method in (CREATE, RELEASE):
            told = object_of(message.params)
            if message.method == CREATE:
                question.session_id = told.get("sessionId")
            else:
                self._terminals.pop((str(told.get("sessionId")), str(told.get("terminalId"))), None)
        question.number, frame = self._editor.request(str(message.method), params, question)
        self._open[question.id] = question
        return frame

    def answered(self, response: Response[Question]) -> tuple[bytes, bytes]:
        """The editor has answered: what goes to it, and what to the hub."""
        question = response.token
        terminal = None
        if question.session_id is not None and response.result is not None:
            terminal = object_of(response.result).get("terminalId")
        if question.is_withdrawn:
            return (self._release(question.session_id, terminal) if terminal is not None else b""), b""
        self._open.pop(question.id, None)
        if response.error is not None:
            return b"", encode_error(question.id, response.error)
        if isinstance(question.session_id, str) and isinstance(terminal, str):
            self._terminals[question.session_id, terminal] = None
        return b"", encode_result(question.id, response.result)

    def withdraw(self, question_id: RequestId) -> bytes:
        """The hub wants no answer any more; what goes to the editor."""
        question = self._open.pop(question_id, None)
        if question is None:
            return b""
        if question.session_id is None:
            return self._editor.cancel(question.number) or b""
        question.is_withdrawn = True  # its answer may be a terminal all the same, and is waited for
        return encode_notification(CANCEL_REQUEST, {"requestId": question.number})

    def leave(self) -> bytes:
        """The hub is gone: what it asked is withdrawn, and its terminals end. What goes to the editor."""
        frames = [self.withdraw(question_id) for question_id in list(self._open)]
        frames += [self._release(*terminal) for terminal in self._terminals]
        self._terminals.clear()
        return b"".join(frames)

    def _release(self, session_id: Any, terminal: Any) -> bytes:
        done = Question(None)
        done.is_withdrawn = True
        _, frame = self._editor.request(RELEASE, {"sessionId": session_id, "terminalId": terminal}, done)
        return frame
