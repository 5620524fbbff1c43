"""The hub: it owns the sessions, serves the requests that agents send to their client, and writes the log."""
