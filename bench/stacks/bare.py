"""What a machine can do at all for so many consumers: the same frames, ready in memory, to each socket. Nothing else.

    python bare.py CONSUMERS BYTES EVENTS

Prints the port. Each consumer is answered when it asks; once all of them are there, each gets so many frames of so many
bytes, in writes of the size that a hub uses.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time

PIECE = 64 << 10


def main(consumers: int, size: int, events: int) -> None:
    frame = b"data: chunk number ".ljust(size - 2, b".") + b"\n\n"
    listening = socket.create_server(("127.0.0.1", 0), backlog=consumers)
    print(listening.getsockname()[1], flush=True)
    selector = selectors.DefaultSelector()
    for _ in range(consumers):
        taken, _ = listening.accept()
        taken.recv(PIECE)
        taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        taken.setblocking(False)
        selector.register(taken, selectors.EVENT_WRITE, [0])
    frames = memoryview(b": begin %f \n\n" % time.time() + frame * events)
    left = consumers
    while left:
        for key, _ in selector.select():
            at = key.data
            assert isinstance(key.fileobj, socket.socket)
            at[0] += key.fileobj.send(frames[at[0] : at[0] + PIECE])
            if at[0] == len(frames):
                selector.unregister(key.fileobj)
                left -= 1
    sys.stdin.read()  # whoever started this ends it


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
