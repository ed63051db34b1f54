-- Responses in place of the origins'. Times are milliseconds since 1970; tags, conditions, responses and expirations
-- are JSON in the form of the API.
CREATE TABLE mock_collections (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT,
  enabled INTEGER NOT NULL,
  tags TEXT NOT NULL,
  color TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Order of creation; times may repeat.
  position INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TABLE mock_rules (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT,
  tags TEXT NOT NULL,
  collection_id TEXT REFERENCES mock_collections (id) ON DELETE SET NULL,
  condition TEXT NOT NULL,
  response_config TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  expiration TEXT,
  -- Start time of the expiration, and the number of hits at that time.
  expiration_since_ms INTEGER NOT NULL,
  expiration_since_hits INTEGER NOT NULL,
  response_schema TEXT,
  version INTEGER NOT NULL,
  -- 1: created from traffic and not promoted yet.
  recorded INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  -- Written periodically, not with each hit.
  hit_count INTEGER NOT NULL,
  next_index INTEGER NOT NULL,
  position INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX mock_rules_by_collection ON mock_rules (collection_id);

CREATE TABLE mock_versions (
  mock_id TEXT NOT NULL REFERENCES mock_rules (id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  condition TEXT NOT NULL,
  response_config TEXT NOT NULL,
  comment TEXT,
  saved_at_ms INTEGER NOT NULL,
  UNIQUE (mock_id, version)
) STRICT;

-- The latest responses of all rules, including deleted ones.
CREATE TABLE mock_hits (
  number INTEGER PRIMARY KEY,
  mock_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  request_url TEXT NOT NULL,
  request_method TEXT NOT NULL,
  response_status INTEGER NOT NULL,
  response_time_ms REAL NOT NULL,
  response_index INTEGER
) STRICT;

-- Statistics of all responses of a rule, including those that are no longer stored.
CREATE TABLE mock_hit_stats (
  mock_id TEXT PRIMARY KEY REFERENCES mock_rules (id) ON DELETE CASCADE,
  total_hits INTEGER NOT NULL,
  sum_ms REAL NOT NULL,
  min_ms REAL NOT NULL,
  max_ms REAL NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL
) STRICT;
