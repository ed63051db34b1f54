-- The throttle profile (JSON) and whether it is active; at most one row.
CREATE TABLE throttle (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  profile TEXT NOT NULL,
  enabled INTEGER NOT NULL
) STRICT;
