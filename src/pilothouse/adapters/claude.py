"""The old home of the Claude Code bridge, for configurations that start `python -m pilothouse.adapters.claude`."""

from ..agents.claude_bridge.__main__ import main

if __name__ == "__main__":
    main()
