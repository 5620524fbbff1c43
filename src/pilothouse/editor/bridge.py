"""The bridge as a machine without I/O: lines of the editor and of the hub go in, lines for both come out.

The hub may die and come back; the editor's side of the conversation goes on over that. Rules a change must not break:
every request of the editor is answered exactly once; nothing is passed on twice; what one hub asked is never answered
to another; an update costs a look at its first bytes and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw, UnsetType

from ..acp.errors import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_CANCELLED, RESOURCE_NOT_FOUND, RequestError
from ..acp.framing import Oversize
from ..acp.jsonrpc import Message, RequestId, encode_error, encode_notification, encode_result
from ..acp.methods import CANCEL_REQUEST
from ..acp.peer import Malformed, Peer, Response, Unmatched
from ..offer import PROTOCOL_VERSION, offer
from .requests import (
    AGAIN,
    LOAD,
    MAKING,
    OPENING,
    PROMPT,
    RESUME,
    Questions,
    Request,
    object_of,
    our_facts,
    read_request,
    resuming,
    seq_in,
)
from .views import UNKNOWN, UPDATE, View, Views

Line = bytes | Oversize
ACTIVE = frozenset({"running", "thinking", "waiting_for_approval", "waiting_for_input"})
"""Statuses of a session in which a turn is under way."""
NO_PARAMS = Raw(b'{"protocolVersion":%d,"clientCapabilities":{}}' % PROTOCOL_VERSION)
MOST_OWN = 100
"""Prompts that a hub is told to be the editor's own; it takes no more."""
CANCEL = "session/cancel"
ANY_WORD = "_pilothouse/ping"
CANCELLED = {"stopReason": "cancelled"}


class Join:
    """A request of the bridge itself, by which it takes its place at a hub; for a session, or for the connection."""

    def __init__(self, view: View | None = None) -> None:
        self.view = view


class Bridge:
    """Between one editor and one hub after another.

    The driver hands in what comes (`from_editor`, `from_hub`), says when a hub is there and when it is gone (`attach`,
    `detach`) or cannot be had (`fail`), and after each of these sends what `take` gives to either side.
    """

    def __init__(self, *, version: str, new_id: Callable[[], str], agent: str | None = None) -> None:
        self._version = version
        self._new_id = new_id
        self._agent = agent
        self._views = Views()
        self._questions = Questions()
        self._hub: Peer[Request | Join] = Peer()
        self._requests: dict[Request, None] = {}
        self._held: list[Request | bytes] = []
        self._joining: set[Join] = set()
        self._initialize = NO_PARAMS
        self._is_up = False
        self._is_attached = False
        self._turned_away = ""
        """Why a hub that is there will have nothing to do with this editor."""
        self._out: list[bytes] = []
        self._up: list[bytes] = []
        self.held_bytes = 0
        """What waits for a hub."""

    @property
    def wants_hub(self) -> bool:
        """Whether somebody waits for an answer that only a hub can give."""
        return bool(self._requests)

    @property
    def owes(self) -> bool:
        """Whether an answer is due that does not take as long as a turn does."""
        return any(request.method != PROMPT for request in self._requests)

    @property
    def is_joining(self) -> bool:
        return self._is_attached and not self._is_up

    def take(self) -> tuple[bytes, bytes]:
        """What is to be sent: to the editor, and to the hub."""
        out, up = self._out, self._up
        self._out, self._up = [], []
        return b"".join(out), b"".join(up)

    # -- the hub comes and goes --

    def attach(self) -> None:
        """A connection to a hub is open: take up there what the editor has open. Until that is done the rest waits."""
        self._is_attached = True
        self._turned_away = ""
        self._join("initialize", self._initialize, Join())
        opening = {request.session_id for request in self._requests if request.sent and request.method in OPENING}
        for view in self._views.all():
            if view.session_id not in opening:
                self._rejoin(view)

    def detach(self, *, early: bool = False) -> None:
        """The connection is gone. What it asked is withdrawn; what cannot be asked again is answered.

        `early`: it was gone soon. A request under which that happens again and again is not asked for ever.
        """
        self._out.append(self._questions.leave())
        self._hub.close()
        self._joining.clear()
        self._up.clear()
        was_up, self._is_up, self._is_attached = self._is_up, False, False
        for request in list(self._requests):
            request.number = None
            request.deaths += early and (request.sent or not was_up)
            if request.sent and request.method not in AGAIN:
                self._refuse(request, RequestError(INTERNAL_ERROR, LOST.format(method=request.method)))
            elif request.deaths >= DEATHS:
                told = self._turned_away or FATAL.format(method=request.method)
                self._refuse(request, RequestError(INTERNAL_ERROR, told))

    def ask_for_a_word(self) -> None:
        """Have the hub say something, if it can still say anything: that it does not know this will do."""
        _, frame = self._hub.request(ANY_WORD, {}, Join())
        self._up.append(frame)

    def nobody(self) -> None:
        """There is no hub, and none is wanted: what was only told, a cancel, is about nothing that goes on."""
        self.held_bytes -= sum(len(one) for one in self._held if isinstance(one, bytes))
        self._held = [one for one in self._held if isinstance(one, Request)]

    def fail(self, error: RequestError) -> None:
        """No hub can be had: whoever waits is told so. The next request may try again."""
        self._held.clear()
        self.held_bytes = 0
        for request in list(self._requests):
            if request.cancelled:
                self._keep_own(request)
                self._answer(request, encode_result(request.id, CANCELLED))
            else:
                self._refuse(request, error)

    def _join(self, method: str, params: Any, token: Join) -> None:
        _, frame = self._hub.request(method, params, token)
        self._joining.add(token)
        self._up.append(frame)

    def _rejoin(self, view: View) -> None:
        self._join(RESUME, self._resuming(view), Join(view))

    def _resuming(self, view: View) -> Raw:
        """How a session is gone on with: after what the editor has, without saying its own words back to it."""
        own = {request.own for request in self._requests if request.sent and request.session_id == view.session_id}
        facts: dict[str, Any] = {"own": sorted({*view.own, *own} - {None}, key=str)[-MOST_OWN:]}
        after = view.rejoin()
        return resuming(view.params, view.session_id, {**facts, "after": after} if after >= 0 else facts)

    def _joined(self, response: Response[Any], token: Join) -> None:
        self._joining.discard(token)
        if token.view is not None:
            self._taken_up(token.view, response)
        if not self._joining and self.is_joining:
            self._go_on()

    def _taken_up(self, view: View, response: Response[Any]) -> None:
        if response.error is None and response.result is not None:
            facts = our_facts(response.result)
            view.told(seq_in(facts))
            view.status = str(facts.get("status"))
            view.own.clear()
        elif response.error is not None and _is_closing(response.error):
            pass  # the next hub is asked
        elif response.error is not None and response.error.code == INVALID_PARAMS and view.cursor() > 0:
            view.lose()  # after a loss of power the log may end before what the editor has seen
            self._rejoin(view)
        else:
            self._views.close(view.session_id)  # it was deleted; what is asked of it is answered with that

    def _go_on(self) -> None:
        """All sessions are open again: send again what has no answer, then what has waited."""
        self._is_up = True
        for request in list(self._requests):
            if request.sent:
                self._send_again(request)
        held, self._held, self.held_bytes = self._held, [], 0
        for one in held:
            if isinstance(one, Request):
                self._send(one)
            else:
                self._up.append(one)

    def _send_again(self, request: Request) -> None:
        view = self._views.get(request.session_id or "")
        if request.cancelled and (view is None or view.status not in ACTIVE):
            self._answer(request, encode_result(request.id, CANCELLED))  # it ended with its hub and must not run now
            return
        if request.method in OPENING and view is not None:
            request.method, request.params = RESUME, self._resuming(view)
        self._send(request)
        if request.cancelled:  # the hub lives, and may not have heard of it
            self._up.append(encode_notification(CANCEL, {"sessionId": request.session_id}))

    # -- from the editor --

    def from_editor(self, lines: Sequence[Line]) -> None:
        for line in lines:
            got = self._questions.receive(line)
            if isinstance(got, Message):
                if isinstance(got.id, UnsetType):
                    self._told(str(got.method), got, line)
                else:
                    self._ask(got.id, str(got.method), got.params, len(line))
            elif isinstance(got, Response):
                out, up = self._questions.answered(got)
                self._out.append(out)
                self._up.append(up)
            elif isinstance(got, Malformed) and got.reply is not None:
                self._out.append(got.reply)

    def _ask(self, request_id: RequestId, method: str, params: Raw | UnsetType, size: int) -> None:
        if method == "initialize":
            self._introduce(request_id, params)
            return
        request = read_request(request_id, method, params, agent=self._agent, new_id=self._new_id)
        self._requests[request] = None
        if self._is_up:
            self._send(request)
        else:
            request.size = size
            self._held.append(request)
            self.held_bytes += size

    def _introduce(self, request_id: RequestId, params: Raw | UnsetType) -> None:
        """Answered here and now; the hub is told when it is there."""
        answer = offer(version=self._version, meta={"agent": self._agent})
        self._out.append(encode_result(request_id, answer))
        self._initialize = NO_PARAMS if isinstance(params, UnsetType) else params
        if self._is_attached:
            self._join("initialize", self._initialize, Join())

    def _send(self, request: Request) -> None:
        """To the hub. What it opens is followed from here on: its updates come before its answer."""
        if request.method in OPENING | {PROMPT} and request.session_id is not None:
            request.opened = request.opened or self._views.get(request.session_id) is None
            view = self._views.open(request.session_id, UNKNOWN)
            if request.method in OPENING and not request.sent:
                view.params = request.params
                view.reload(self._beginning(request))
        request.sent = True
        request.times += 1
        request.number, frame = self._hub.request(request.method, request.params, request)
        self._up.append(frame)

    def _beginning(self, request: Request) -> int:
        """The seq after which the editor wants a session to be told."""
        if request.method == LOAD or request.params is None:
            return 0
        after = our_facts(request.params).get("after")
        return after if isinstance(after, int) and not isinstance(after, bool) and after >= 0 else UNKNOWN

    def _told(self, method: str, message: Message, line: Line) -> None:
        """A notification."""
        params = object_of(message.params)
        if method == CANCEL_REQUEST:
            self._cancel(params.get("requestId"))
            return
        settled = method == CANCEL and self._cancel_turn(params.get("sessionId"))
        if self._is_up:
            self._up += (bytes(line), b"\n")  # type: ignore[arg-type]
        elif not settled:
            held = bytes(line) + b"\n"  # type: ignore[arg-type]
            self._held.append(held)
            self.held_bytes += len(held)

    def _cancel(self, request_id: Any) -> None:
        """The editor wants no answer any more. It is given one all the same."""
        for request in self._requests:
            if request.id == request_id and type(request.id) is type(request_id):
                break
        else:
            return
        request.cancelled = request.method == PROMPT
        if request.number is not None:
            self._up.append(encode_notification(CANCEL_REQUEST, {"requestId": request.number}))
        elif not request.cancelled or not request.sent:
            self._refuse(request, RequestError(REQUEST_CANCELLED, "Request cancelled"))

    def _cancel_turn(self, session_id: Any) -> bool:
        """A prompt that has not left never will. One that has must not run again should its hub die over this.

        Whether there was any.
        """
        meant = [one for one in self._requests if one.session_id == session_id and one.method == PROMPT]
        for request in meant:
            request.cancelled = True
            if not request.sent:
                self._answer(request, encode_result(request.id, CANCELLED))
        return bool(meant)

    # -- from the hub --

    def from_hub(self, lines: Sequence[Line]) -> None:
        out, passes = self._out, self._views.passes
        run = self._views.run(lines) if len(lines) > 1 else None
        if run is not None:
            out += (run, b"\n")
            return
        for line in lines:
            if line.startswith(UPDATE):
                if passes(line):  # type: ignore[arg-type]
                    out += (line, b"\n")  # type: ignore[arg-type]
            else:
                self._heard(line)

    def _heard(self, line: Line) -> None:
        got = self._hub.receive(line)
        if isinstance(got, Response):
            if isinstance(got.token, Request):
                self._answered(got.token, got)
            else:
                self._joined(got, got.token)
        elif isinstance(got, Message):
            self._asks(got, line)
        elif isinstance(got, Unmatched) and got.id is None and got.error is not None:
            self._turned_away = AWAY.format(reason=got.error.message)

    def _asks(self, message: Message, line: Line) -> None:
        """The hub asks the editor, or tells it something that is no update."""
        if not isinstance(message.id, UnsetType):
            self._out.append(self._questions.ask(message))
        elif message.method == CANCEL_REQUEST:
            self._out.append(self._questions.withdraw(object_of(message.params).get("requestId")))
        else:
            self._out += (bytes(line), b"\n")  # type: ignore[arg-type]
            if not isinstance(message.params, UnsetType):
                self._note_announcement(message.params)

    def _note_announcement(self, params: Raw) -> None:
        """What an agent announces by a name of its own has a place among the updates of its session."""
        session_id = object_of(params).get("sessionId")
        view = self._views.get(session_id) if isinstance(session_id, str) else None
        if view is not None:
            view.noted(seq_in(our_facts(params)))

    def _answered(self, request: Request, response: Response[Any]) -> None:
        error, result = response.error, response.result
        if error is not None and _is_closing(error):
            self._postpone(request)
            return
        if error is not None and error.code == RESOURCE_NOT_FOUND and _was_deleted(request):
            error, result = None, Raw(b"{}")
        if error is not None:
            self._note_refusal(request, error)
            self._answer(request, encode_error(request.id, error))
        else:
            if result is not None:
                self._note_result(request, result)
            self._answer(request, encode_result(request.id, result))

    def _postpone(self, request: Request) -> None:
        """A hub that is about to end has not done it. The next one will."""
        if request.cancelled:
            self._answer(request, encode_result(request.id, CANCELLED))
            return
        request.number, request.sent = None, False
        self._held.append(request)
        self.held_bytes += request.size

    def _note_result(self, request: Request, result: Raw) -> None:
        session_id, facts = request.session_id, our_facts(result)
        if request.method in MAKING:
            made = object_of(result).get("sessionId")
            if isinstance(made, str):
                # its first updates, with smaller seqs than the answer's, come after it
                self._views.open(made, 0).params = request.params
        elif request.method in OPENING | {PROMPT} and session_id is not None:
            view = self._views.get(session_id)
            if view is not None:
                view.told(seq_in(facts))
        elif request.method in ("session/close", "session/delete") and session_id is not None:
            self._views.close(session_id)

    def _note_refusal(self, request: Request, error: RequestError) -> None:
        view = self._views.get(request.session_id or "")
        if view is not None and request.method == PROMPT and isinstance(error.data, dict) and "seq" in error.data:
            view.told(seq_in(error.data))
        elif view is not None and request.opened:
            self._views.close(view.session_id)

    # -- answers --

    def _answer(self, request: Request, frame: bytes) -> None:
        del self._requests[request]
        if request in self._held:
            self._held.remove(request)
            self.held_bytes -= request.size
        self._out.append(frame)

    def _keep_own(self, request: Request) -> None:
        """The hub may have stored it and will tell of it; to this editor what it said is not to be said back."""
        view = self._views.get(request.session_id or "")
        if view is not None and request.own is not None and request.sent:
            view.own.add(request.own)

    def _refuse(self, request: Request, error: RequestError) -> None:
        self._keep_own(request)
        if request.opened and request.session_id is not None and request.method in OPENING:
            self._views.close(request.session_id)
        self._answer(request, encode_error(request.id, error))


DEATHS = 5
"""How many hubs may die over a request."""
FATAL = "The hub ended each time it was asked for {method}; hub.log in its home may tell why"
AWAY = "The hub takes no more of this editor: {reason}"
LOST = "The hub went away while it did {method}. Whether it was done is not known; ask again if it may be done twice"


def _was_deleted(request: Request) -> bool:
    """Whether a hub that died may have done what the next one finds nothing for."""
    return request.method == "session/delete" and request.times > 1


def _is_closing(error: RequestError) -> bool:
    """Whether a hub refused something only because it is about to end."""
    return isinstance(error.data, dict) and error.data.get("closing") is True
