-- Schema 3: for how long a lease was given, so that a clock that is set back frees it. Unknown for older ones.

ALTER TABLE lease ADD COLUMN length INTEGER;
