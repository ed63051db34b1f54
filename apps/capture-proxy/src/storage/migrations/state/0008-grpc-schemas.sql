-- What tells the types of gRPC messages.
CREATE TABLE grpc_schemas (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- proto, descriptor_set, reflection
  source TEXT NOT NULL,
  -- JSON array of what the files declare, read when they came
  files TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT;
