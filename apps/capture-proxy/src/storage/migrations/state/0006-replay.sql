-- Saved requests for replays. Listed newest first, by number, not by time.
CREATE TABLE saved_request (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  source_entry_id TEXT,
  name TEXT,
  collection TEXT,
  tags TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  fields TEXT NOT NULL,
  body BLOB,
  body_bytes INTEGER NOT NULL,
  saved_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL
);
CREATE INDEX saved_request_collection ON saved_request (collection) WHERE collection IS NOT NULL;

-- `summary` is JSON once the batch has ended.
CREATE TABLE replay_batch (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  saved_request_id TEXT,
  source_entry_id TEXT,
  state TEXT NOT NULL,
  iterations INTEGER NOT NULL,
  concurrency INTEGER NOT NULL,
  delay_ms INTEGER,
  summary TEXT,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER
);

-- `result` is JSON without bodies, which the captured entry has.
CREATE TABLE replay_result (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  batch_id TEXT,
  iteration INTEGER,
  saved_request_id TEXT,
  result TEXT NOT NULL
);
CREATE INDEX replay_result_batch ON replay_result (batch_id, iteration);
CREATE INDEX replay_result_saved ON replay_result (saved_request_id) WHERE saved_request_id IS NOT NULL;
