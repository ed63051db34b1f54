-- Facts about the store itself, by name.
CREATE TABLE fact (
  name TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT,
  notes TEXT,
  tags TEXT NOT NULL DEFAULT '[]',
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  -- Entries up to this one were cleared; their rows are deleted in the background.
  floor_seq INTEGER NOT NULL DEFAULT 0,
  -- Deleted for users; the row is deleted after its entries.
  doomed INTEGER NOT NULL DEFAULT 0,
  -- Updated with every batch, so that queries need not count.
  entry_count INTEGER NOT NULL DEFAULT 0,
  stored_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One narrow row per exchange. Times are microseconds except for the start, sizes are bytes.
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  method TEXT NOT NULL,
  scheme TEXT NOT NULL,
  host TEXT NOT NULL,
  port INTEGER NOT NULL,
  path TEXT NOT NULL,
  status INTEGER,
  status_message TEXT,
  request_type TEXT,
  response_type TEXT,
  resource_type TEXT NOT NULL,
  duration_us INTEGER,
  ttfb_us INTEGER,
  request_size INTEGER NOT NULL,
  response_size INTEGER,
  request_version TEXT,
  response_version TEXT,
  -- 1 modified, 2 passthrough, 4 touched by a script
  flags INTEGER NOT NULL,
  source TEXT NOT NULL,
  client_addr TEXT,
  server_addr TEXT,
  connection_id INTEGER,
  device_id TEXT,
  failure_code TEXT,
  note TEXT,
  -- JSON array: blocked, dns, connect, tls, send, wait, receive in milliseconds
  timings TEXT NOT NULL,
  request_body_size INTEGER NOT NULL,
  request_body_stored INTEGER NOT NULL,
  request_body_state INTEGER NOT NULL,
  response_body_size INTEGER NOT NULL,
  response_body_stored INTEGER NOT NULL,
  response_body_state INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX entry_by_id ON entry (id);
-- Grows only at its end, and has the columns for counting, sorting and most filters.
CREATE INDEX entry_by_session ON entry (
  session, seq, state, status, method, host, resource_type, duration_us, ttfb_us, request_size, response_size, started_ms
);
CREATE INDEX entry_pending ON entry (seq) WHERE state = 0;

-- Data that lists do not show: fields as JSON arrays name, value, name, value in wire order.
CREATE TABLE head (
  seq INTEGER PRIMARY KEY,
  request_fields TEXT NOT NULL,
  request_trailers TEXT,
  response_fields TEXT,
  response_trailers TEXT,
  failure TEXT,
  tls TEXT
) STRICT;

-- key is seq * 2, plus 1 for the response. The body is either in bytes or in the numbered file.
CREATE TABLE body (
  key INTEGER PRIMARY KEY,
  bytes BLOB,
  file INTEGER
) STRICT;
CREATE INDEX body_by_file ON body (file) WHERE file IS NOT NULL;
