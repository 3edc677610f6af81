-- Schema 6: the whole state of a session apart from what every write changes, and its epoch beside its number: who has it reads no state.
CREATE TABLE session_head (
  session TEXT PRIMARY KEY,
  body    BLOB NOT NULL
);
INSERT INTO session_head (session, body) SELECT id, head FROM session WHERE length(head) > 0;
ALTER TABLE session DROP COLUMN head;
ALTER TABLE session ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
