"""The bridge between an editor and the hub: `pilothouse acp`.

    editor ─stdio→ pump ─lines→ bridge ─lines→ pump ─acp.sock→ hub
           ←─────      ←──────        ←──────      ←────────

`bridge` decides and does no I/O; `views` knows what the editor has seen of each session, `requests` holds the open
requests of both sides; `pump` moves the bytes; `hub_connection` finds the hub, or starts it. The bridge must start at
once and stay small: nothing of the hub or the server is imported here.
"""
