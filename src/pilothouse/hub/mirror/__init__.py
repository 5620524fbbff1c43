"""Records of other programs, imported into the log."""
