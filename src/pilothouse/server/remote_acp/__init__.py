"""The hub as an ACP agent: what an editor, or any ACP client, talks to. It knows a hub and a link, and no sockets.

`face` has the methods of the protocol, `attachments` what a client has open, `feed` follows one session for it,
`asking` puts an agent's questions to it, `runs` are updates made once for all, `answers` makes results and errors.
"""

from .face import AcpFace

__all__ = ["AcpFace"]
