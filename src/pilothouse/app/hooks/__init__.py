"""Claude Code's hooks: how its settings are told to ask the hub, and how they are given back as they were.

`arrays.py` and `entries.py` are pure; `places.py` knows which files there are, `records.py` keeps what was done to
them, `installing.py` does it. Nothing is written but the entry that is ours. What the hook itself does is not here:
`remote/hook.py` has it, which must not load what this package loads.
"""
