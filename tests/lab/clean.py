"""Starts a program with these variables and no others: `python clean.py NAME=VALUE … -- PROGRAM ARGUMENT …`.

Only the marks by which a hub finds its own processes again are kept of the caller's environment.
"""

import os
import sys

at = sys.argv.index("--")
kept = {name: value for name, value in os.environ.items() if name.startswith("PILOTHOUSE_")}
given = dict(word.split("=", 1) for word in sys.argv[1:at])
os.execve(sys.argv[at + 1], sys.argv[at + 1 :], {**given, **kept})
