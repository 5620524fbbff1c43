"""The frame of every HTTP request: operations, errors, streams, downloads, limits."""
