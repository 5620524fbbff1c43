"""Claude Code through its own command line."""
