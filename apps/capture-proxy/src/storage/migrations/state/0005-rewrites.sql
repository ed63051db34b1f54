-- Rules that change requests and responses. Times are milliseconds since 1970; condition and actions are JSON texts.
CREATE TABLE rewrite_rules (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  condition TEXT NOT NULL,
  direction TEXT NOT NULL,
  actions TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  hit_count INTEGER NOT NULL,
  device_id TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
