"""The WebSocket stream at `/ws`: events, lists and commands of all sessions on one connection."""
