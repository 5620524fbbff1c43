"""Editors that can run `pilothouse acp`: what they are told, where they keep it, and how it gets there.

`jsonc.py`, `entries.py`, `snippets.py` and `merging.py` are pure; `places.py` looks where files are, `files.py` is the
only one that writes. Nothing is written but the member that is ours, and never without a copy of what was there.
"""
