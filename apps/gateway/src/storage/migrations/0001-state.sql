CREATE TABLE consumer (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL
) STRICT;

-- The window comes before the consumer, so that the rows of one day are adjacent: they are written all day long, and
-- deleted together. `used` is unsigned; above 2^63 - 1 it reads as a negative number (two's complement).
CREATE TABLE quota_counter (
  budget INTEGER NOT NULL,
  window_start_s INTEGER NOT NULL,
  consumer_id INTEGER NOT NULL REFERENCES consumer (id),
  used INTEGER NOT NULL,
  PRIMARY KEY (budget, window_start_s, consumer_id)
) STRICT, WITHOUT ROWID;

-- Charge groups that are not in the counters yet, oldest first: 64-bit little-endian numbers, three for
-- each counter (twice the consumer's id, plus one for the month; start of the window; used). One row, and so one page,
-- for a group, whatever its consumers.
CREATE TABLE quota_group (
  seq INTEGER PRIMARY KEY,
  counters BLOB NOT NULL
) STRICT;

CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  envelope TEXT NOT NULL,
  acked_ms INTEGER
) STRICT;

CREATE INDEX event_by_ack ON event (acked_ms, seq);

CREATE TABLE event_target (
  event_seq INTEGER NOT NULL REFERENCES event (seq) ON DELETE CASCADE,
  target TEXT NOT NULL,
  PRIMARY KEY (event_seq, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE generation (
  seq INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  content_hash INTEGER NOT NULL,
  published_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  actor TEXT,
  text TEXT NOT NULL
) STRICT;

-- Hours and days together: hours are kept for weeks, days for more than a year.
CREATE TABLE usage (
  span_s INTEGER NOT NULL,
  start_s INTEGER NOT NULL,
  consumer TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  rate_limited INTEGER NOT NULL,
  shed INTEGER NOT NULL,
  total_ms REAL NOT NULL,
  PRIMARY KEY (span_s, start_s, consumer)
) STRICT, WITHOUT ROWID;

CREATE TABLE export_run (
  seq INTEGER PRIMARY KEY,
  window TEXT NOT NULL,
  window_start_s INTEGER NOT NULL,
  scheduled INTEGER NOT NULL,
  status TEXT NOT NULL,
  partial INTEGER NOT NULL,
  formats TEXT NOT NULL,
  directory TEXT NOT NULL,
  consumers INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  windows_nonempty INTEGER NOT NULL,
  error TEXT,
  generated_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX export_run_by_window ON export_run (window, scheduled, status, window_start_s);
