-- Rules that pause messages matching their condition (JSON). Times are milliseconds since 1970.
CREATE TABLE breakpoints (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  condition TEXT NOT NULL,
  direction TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  timeout_secs INTEGER,
  hit_count INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
