"""Claude Code's hooks: how its settings are told to ask the hub, and how they are given back as they were.

`entries.py` is pure; `installing.py` finds the settings files, changes them and records each change. Nothing is
written but the entry that is ours. The hook itself is `remote/hook.py`, which must not load what this package loads.
"""
