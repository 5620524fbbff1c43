"""Sessions of other programs on this machine: listed, watched, adopted."""
