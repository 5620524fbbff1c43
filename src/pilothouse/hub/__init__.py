"""The hub: the one place that owns sessions, answers what agents ask of their client, and writes the log."""
