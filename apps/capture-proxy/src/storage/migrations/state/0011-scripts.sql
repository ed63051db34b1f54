-- Scripts, the executions of their hooks, and the values that they keep. Times are milliseconds since 1970; hooks, match
-- filters, console lines and changes are JSON.
CREATE TABLE scripts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT,
  source TEXT NOT NULL,
  hooks TEXT NOT NULL,
  match_filter TEXT,
  on_error TEXT NOT NULL,
  priority INTEGER NOT NULL,
  enabled INTEGER NOT NULL,
  hit_count INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT;

-- Executions of deleted scripts stay as part of their entries, so the name is stored here.
CREATE TABLE script_executions (
  number INTEGER PRIMARY KEY,
  script_id TEXT NOT NULL,
  script_name TEXT NOT NULL,
  hook TEXT,
  entry_id TEXT,
  duration_ms REAL NOT NULL,
  error TEXT,
  console TEXT NOT NULL,
  changes TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX script_executions_by_script ON script_executions (script_id);
CREATE INDEX script_executions_by_entry ON script_executions (entry_id) WHERE entry_id IS NOT NULL;

CREATE TABLE script_values (
  script_id TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (script_id, key)
) STRICT, WITHOUT ROWID;
