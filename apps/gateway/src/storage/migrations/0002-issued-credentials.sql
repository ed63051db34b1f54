-- Keys issued over the admin API, in addition to those of the document. Only their SHA-256 is stored.
CREATE TABLE issued_credential (
  id TEXT PRIMARY KEY,
  consumer TEXT NOT NULL,
  digest BLOB NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  retire_ms INTEGER
) STRICT, WITHOUT ROWID;
