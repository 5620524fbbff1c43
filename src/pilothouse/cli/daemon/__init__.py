"""The hub as a service of this machine."""
