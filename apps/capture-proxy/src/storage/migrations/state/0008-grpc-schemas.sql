-- Schemas for gRPC messages.
CREATE TABLE grpc_schemas (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- proto, descriptor_set, reflection
  source TEXT NOT NULL,
  -- JSON array of the declarations in the files, parsed when they were added
  files TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT;
