"""The hub over HTTP, server-sent events and WebSockets.

`http.operations` is the frame every request goes through; each module of `routes` holds the operations of one noun and
lists them in `OPERATIONS`. `app` puts them together, `listener` puts the application on sockets. Nothing here keeps
facts of its own: what consumers see comes from the log, what they want goes to the hub.
"""
