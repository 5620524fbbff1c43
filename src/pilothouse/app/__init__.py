"""The composition root: the one place that knows which classes make up a running Pilothouse.

Everything below takes what it needs as arguments; here a configuration becomes a registry of adapters and a hub
(`composition`), and a read-only view of stored sessions (`stored_sessions`). Nothing is loaded with the package
itself: most commands only read, and must not wait for a hub that they do not start.
"""
