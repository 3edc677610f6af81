-- Usage by day, key, model, route and agent; the last batch of each process; calls of a minute.
CREATE TABLE usage (
  day     TEXT NOT NULL,
  key     TEXT NOT NULL,
  model   TEXT NOT NULL,
  route   TEXT NOT NULL,
  agent   TEXT NOT NULL,
  attempts           INTEGER NOT NULL,
  input              INTEGER NOT NULL,
  output             INTEGER NOT NULL,
  cached             INTEGER NOT NULL,
  stored             INTEGER NOT NULL,
  reasoning          INTEGER NOT NULL,
  cost               INTEGER NOT NULL,
  unpriced           INTEGER NOT NULL,
  estimated          INTEGER NOT NULL,
  estimated_attempts INTEGER NOT NULL,
  lost_attempts      INTEGER NOT NULL,
  lost_cost          INTEGER NOT NULL,
  lesser_cost        INTEGER NOT NULL,
  PRIMARY KEY (day, key, model, route, agent)
) WITHOUT ROWID;

CREATE TABLE usage_source (
  source TEXT PRIMARY KEY,
  number INTEGER NOT NULL,
  until  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE usage_calls (
  minute INTEGER NOT NULL,
  key    TEXT NOT NULL,
  calls  INTEGER NOT NULL,
  PRIMARY KEY (minute, key)
) WITHOUT ROWID;
