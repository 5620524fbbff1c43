-- Pieces of events and sources that are too large for one commit: written ahead of it, a few at a time, so that nobody
-- waits for all of them. They count once their event is in batches; a slice beyond its session's last seq is debris of
-- a writer that died, and is swept away when the file is opened.
CREATE TABLE slices (
    session INTEGER NOT NULL REFERENCES sessions (number),
    seq     INTEGER NOT NULL,
    part    TEXT NOT NULL CHECK (part IN ('event', 'source')),
    number  INTEGER NOT NULL,
    body    BLOB NOT NULL
);
CREATE UNIQUE INDEX slices_by_seq ON slices (session, seq, part, number);
