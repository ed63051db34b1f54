-- Numbers continue across restarts. Earlier ones restarted with each process, so each generation gets the number of its row.
-- Lists are read without texts, which may have megabytes: the listed facts have columns, and texts come last.
CREATE TABLE numbered_generation (
  number INTEGER PRIMARY KEY,
  content_hash INTEGER NOT NULL,
  route_count INTEGER NOT NULL,
  published_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  actor TEXT,
  text TEXT NOT NULL
) STRICT;

-- Earlier texts were the normal form in JSON.
INSERT INTO numbered_generation
SELECT
  seq,
  content_hash,
  CASE WHEN json_valid(text) THEN coalesce(json_array_length(text, '$.routes'), 0) ELSE 0 END,
  published_ms,
  source,
  actor,
  text
FROM generation;

DROP TABLE generation;

ALTER TABLE numbered_generation RENAME TO generation;
