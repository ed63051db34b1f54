-- Rules for messages of WebSocket connections. Times are milliseconds since 1970; match and action are JSON texts.
CREATE TABLE ws_rules (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  match TEXT NOT NULL,
  action TEXT NOT NULL,
  hit_count INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation, in which rules apply; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
