-- What was kept as sessions were notes of programs; sessions of people have an owner and a log.
ALTER TABLE session RENAME COLUMN id TO name;
ALTER TABLE session RENAME TO note;
DROP INDEX session_until;
CREATE INDEX note_until ON note (until);

CREATE TABLE session (
  id      TEXT PRIMARY KEY,
  fence   INTEGER NOT NULL,
  owner   TEXT,
  until   INTEGER NOT NULL,
  length  INTEGER,
  seq     INTEGER NOT NULL,
  head    BLOB NOT NULL,
  expires INTEGER NOT NULL,
  changed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX session_changed ON session (changed);
INSERT INTO counter (name, value) VALUES ('session_changes', 0);
CREATE INDEX session_owned ON session (until) WHERE owner IS NOT NULL;
CREATE INDEX session_expires ON session (expires);

CREATE TABLE session_event (
  session TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  body    BLOB NOT NULL,
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE inbox (
  id    INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  body  BLOB NOT NULL,
  until INTEGER NOT NULL
);
CREATE INDEX inbox_owner ON inbox (owner, id);
CREATE INDEX inbox_until ON inbox (until);
