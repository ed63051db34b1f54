-- Numbers go on over restarts. Those of before began anew with each one, so each generation gets the number of its row.
-- Lists are read without texts, which may have megabytes: what they tell of them has columns, and texts come last.
CREATE TABLE numbered_generation (
  number INTEGER PRIMARY KEY,
  content_hash INTEGER NOT NULL,
  route_count INTEGER NOT NULL,
  published_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  actor TEXT,
  text TEXT NOT NULL
) STRICT;

-- Until now, texts were the normal form in JSON.
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
