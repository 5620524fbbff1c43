"""The hub as an ACP agent, for editors and other ACP clients.

`server` has the methods of the protocol, over one link; `websocket` and `lines` are the links.
"""
