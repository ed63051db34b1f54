-- Messages inside an open exchange: WebSocket, server-sent events, JSON streams, gRPC.
CREATE TABLE stream (
  number INTEGER PRIMARY KEY,
  -- The id of its entry
  id TEXT NOT NULL,
  session INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  state INTEGER NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  client_addr TEXT,
  server_addr TEXT,
  -- JSON arrays name, value, name, value in wire order
  request_fields TEXT NOT NULL,
  response_fields TEXT,
  subprotocol TEXT,
  close_code INTEGER,
  close_reason TEXT,
  -- JSON object
  attributes TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  closed_ms INTEGER,
  last_ms INTEGER NOT NULL,
  -- Passed messages, stored or not
  frames_sent INTEGER NOT NULL,
  frames_received INTEGER NOT NULL,
  bytes_sent INTEGER NOT NULL,
  bytes_received INTEGER NOT NULL,
  frames_not_stored INTEGER NOT NULL,
  -- Stored messages
  frames_stored INTEGER NOT NULL DEFAULT 0,
  stored_bytes INTEGER NOT NULL DEFAULT 0,
  -- Frames up to this one were cleared
  floor_ordinal INTEGER NOT NULL DEFAULT 0,
  last_ordinal INTEGER NOT NULL DEFAULT 0,
  -- Deleted for users; the row is deleted after its frames
  is_gone INTEGER NOT NULL DEFAULT 0,
  -- Some frames are to be deleted
  is_untidy INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX stream_by_id ON stream (id);
CREATE INDEX stream_by_kind ON stream (kind, number) WHERE is_gone = 0;
CREATE INDEX stream_untidy ON stream (number) WHERE is_untidy = 1;
CREATE INDEX stream_open ON stream (number) WHERE state <> 3;

-- In order of arrival over all streams: grows only at its end.
CREATE TABLE stream_frame (
  number INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  direction INTEGER NOT NULL,
  type INTEGER NOT NULL,
  opcode INTEGER NOT NULL,
  -- 1 final, 2 compressed
  flags INTEGER NOT NULL,
  effect INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  size INTEGER NOT NULL,
  wire_size INTEGER NOT NULL,
  mask INTEGER,
  payload BLOB NOT NULL,
  original BLOB,
  attributes TEXT
) STRICT;

CREATE UNIQUE INDEX stream_frame_by_stream ON stream_frame (stream, ordinal);
