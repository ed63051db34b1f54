-- Host patterns that the web UI emphasizes.
CREATE TABLE focus_hosts (
  id TEXT PRIMARY KEY,
  pattern TEXT NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL,
  position INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
