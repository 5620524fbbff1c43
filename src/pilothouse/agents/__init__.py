"""Agents that come with Pilothouse. They are programs on the protocol library; nothing of the hub is in them."""
