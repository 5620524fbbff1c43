"""The hub as an ACP agent: what an editor, or any ACP client, talks to. It knows a hub and a link, and no sockets.

`face` has the methods of the protocol, `entrance` lets a client in, `opening` reads what it opens a session with,
`attachments` has what it has open, `feed` follows one session for it, `dressing` shows what only it can see, `asking`
puts an agent's questions to it, `prompts` are its own, `runs` are updates made once for all, `answers` makes results
and errors.
"""

from .face import AcpFace

__all__ = ["AcpFace"]
