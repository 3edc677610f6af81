-- Schema 2: details of journal entries; a place for what could not be read; times that people can read.

ALTER TABLE journal ADD COLUMN data TEXT;

CREATE TABLE quarantine (
  id   INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  key  TEXT NOT NULL,
  node TEXT NOT NULL,
  body TEXT NOT NULL,
  why  TEXT NOT NULL
);

CREATE VIEW journal_readable AS
  SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at_us / 1000000.0, 'unixepoch') AS at,
         node, what, kind, key, agent, text, data
  FROM journal;
