"""A model server for tests with real agents: it says what the prompt's script tells it to, on loopback only."""
