"""Editors that can run `pilothouse acp`: what they are told, where they keep it, and how it gets there.

`jsonc.py` and `entries.py` are pure; `files.py` finds an editor's settings file and is the only one that writes.
Nothing is written but the member that is ours, and never without a copy of what was there.
"""
