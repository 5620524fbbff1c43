"""One live session: its commands, its prompts and turns, and the view that clients get."""
