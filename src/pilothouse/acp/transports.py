"""The old home of child processes; they live in `process`."""

from .process import default_environment, spawn_stdio_transport

__all__ = ["default_environment", "spawn_stdio_transport"]
