"""The commands, one module per group of verbs."""
