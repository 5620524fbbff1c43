"""What the hub does for an agent as its client: files, terminals, editors."""
