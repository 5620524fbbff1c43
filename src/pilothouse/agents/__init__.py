"""Agents that come with Pilothouse, and the small terminal client that shows them."""
