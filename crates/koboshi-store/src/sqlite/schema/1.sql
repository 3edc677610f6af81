-- Schema 1: everything that is kept. Instants are Unix time, in milliseconds unless the name says otherwise.

-- The shared facts and hints; `body` is JSON, `node` is empty for facts.
CREATE TABLE record (
  kind TEXT NOT NULL,
  key  TEXT NOT NULL,
  node TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  seq  INTEGER NOT NULL,
  PRIMARY KEY (kind, key, node)
) WITHOUT ROWID;
CREATE INDEX record_seq ON record (seq);

-- `seq`: the last change of a record. `fence`: the last lease. `cache_bytes`: the size of all cached answers.
CREATE TABLE counter (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counter (name, value) VALUES ('seq', 0), ('fence', 0), ('cache_bytes', 0);

CREATE TABLE lease (
  name   TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  fence  INTEGER NOT NULL,
  until  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE cache (
  key   TEXT PRIMARY KEY,
  body  BLOB NOT NULL,
  until INTEGER NOT NULL
);
CREATE INDEX cache_until ON cache (until);
CREATE TRIGGER cache_in AFTER INSERT ON cache BEGIN
  UPDATE counter SET value = value + length(NEW.body) WHERE name = 'cache_bytes';
END;
CREATE TRIGGER cache_out AFTER DELETE ON cache BEGIN
  UPDATE counter SET value = value - length(OLD.body) WHERE name = 'cache_bytes';
END;

CREATE TABLE session (
  id    TEXT PRIMARY KEY,
  body  BLOB NOT NULL,
  until INTEGER NOT NULL
);
CREATE INDEX session_until ON session (until);

CREATE TABLE journal (
  id    INTEGER PRIMARY KEY,
  at_us INTEGER NOT NULL,
  node  TEXT NOT NULL,
  what  TEXT NOT NULL,
  kind  TEXT,
  key   TEXT,
  agent TEXT,
  text  TEXT NOT NULL
);
CREATE INDEX journal_at ON journal (at_us);
