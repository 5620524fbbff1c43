"""Adapters: each one turns an agent's own dialect into ACP."""
