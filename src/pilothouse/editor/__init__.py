"""The bridge between an editor and the hub: `pilothouse acp`.

    editor ─stdio→ pump ─lines→ bridge ─lines→ pump ─acp.sock→ hub
           ←─────      ←──────        ←──────      ←────────

`bridge` decides and does no I/O; `views` knows what the editor has seen of each session, `requests` what the editor
asks, `questions` what it is asked; `pump` moves the bytes; `reaching` finds the hub, or starts it by `launching`. It is
to start at once and to stay small: nothing of the hub or the server is imported here.
"""
