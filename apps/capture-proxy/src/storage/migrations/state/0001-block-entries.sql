-- Hosts whose requests get a response of Weir instead of the origin's. Times are milliseconds since 1970.
CREATE TABLE block_entries (
  id TEXT PRIMARY KEY,
  pattern TEXT NOT NULL,
  note TEXT,
  enabled INTEGER NOT NULL,
  hit_count INTEGER NOT NULL,
  status_code INTEGER NOT NULL,
  response_body TEXT NOT NULL,
  content_type TEXT NOT NULL,
  device_id TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
