-- Written by log/rows.py, log/commit.py and log/tables.py. Times are ISO 8601 in UTC. Columns of a record are its
-- struct's fields (log/records.py). `last_seq` and `updated` of a busy session lag by a second; `batches` is exact.

CREATE TABLE sessions (
    number           INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    agent            TEXT NOT NULL,
    cwd              TEXT NOT NULL,
    title            TEXT,
    status           TEXT NOT NULL,
    agent_session_id TEXT,
    policy           TEXT,
    meta             TEXT NOT NULL,
    created          TEXT NOT NULL,
    updated          TEXT NOT NULL,
    last_seq         INTEGER NOT NULL,
    archived         TEXT,
    deleted          TEXT
);

-- One row holds events of one session that were committed together: their JSON, one a line. Position and seq are
-- those of the last of them; the others count down from there. An empty line means that the event is in blobs.
-- `sources` is a MessagePack array with one item an event (bytes, nil, or true for "in blobs"); NULL when all are nil.
CREATE TABLE batches (
    position INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (number),
    seq      INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    events   BLOB NOT NULL,
    sources  BLOB
);
CREATE UNIQUE INDEX batches_by_seq ON batches (session, seq);

CREATE TABLE blobs (
    position INTEGER NOT NULL,
    part     TEXT NOT NULL CHECK (part IN ('event', 'source')),
    session  INTEGER NOT NULL REFERENCES sessions (number),
    body     BLOB NOT NULL,
    PRIMARY KEY (position, part)
);
CREATE INDEX blobs_by_session ON blobs (session);

-- What can be searched. The full text index over it is made where SQLite has FTS5.
CREATE TABLE texts (
    position INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (number),
    seq      INTEGER NOT NULL,
    type     TEXT NOT NULL,
    text     TEXT NOT NULL
);
CREATE INDEX texts_by_session ON texts (session);

CREATE TABLE approvals (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    request    TEXT NOT NULL,
    options    TEXT NOT NULL,
    created    TEXT NOT NULL,
    expires    TEXT,
    resolved   TEXT,
    decision   TEXT,
    decided_by TEXT
);
CREATE INDEX approvals_by_session ON approvals (session_id);
CREATE INDEX approvals_pending ON approvals (id) WHERE resolved IS NULL;

CREATE TABLE rules (
    id        TEXT PRIMARY KEY,
    scope     TEXT NOT NULL CHECK (scope IN ('session', 'project', 'everywhere')),
    scope_key TEXT NOT NULL,
    rule      TEXT NOT NULL,
    effect    TEXT NOT NULL CHECK (effect IN ('allow', 'deny')),
    created   TEXT NOT NULL,
    expires   TEXT,
    hits      INTEGER NOT NULL,
    last_hit  TEXT,
    revoked   TEXT
);

CREATE TABLE devices (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    credential TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created    TEXT NOT NULL,
    last_seen  TEXT,
    revoked    TEXT
);
CREATE INDEX devices_by_credential ON devices (credential);

CREATE TABLE turns (
    session_id        TEXT NOT NULL REFERENCES sessions (id),
    client_request_id TEXT NOT NULL,
    turn_id           TEXT NOT NULL,
    created           TEXT NOT NULL,
    PRIMARY KEY (session_id, client_request_id)
);

CREATE TABLE settings (
    name    TEXT PRIMARY KEY,
    value   TEXT,
    updated TEXT NOT NULL
);

-- Facts about this file: `position`, the highest ever given to an event that is now deleted; `search_stale`.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
