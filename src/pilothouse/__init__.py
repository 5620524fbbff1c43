"""Every coding agent, on every screen."""

__version__ = "0.1.0"
