-- Everything here is derived from the traffic database and may be deleted at any time. A change of the signature algorithm
-- is a migration that empties both tables.

-- A range of entries that were indexed together.
CREATE TABLE segment (
  number INTEGER PRIMARY KEY,
  columns INTEGER NOT NULL,
  -- 64-bit floats: the sequence numbers of the entries, ascending.
  seqs BLOB NOT NULL,
  -- 32-bit integers: a hash of each entry, to detect that a number now belongs to another entry.
  marks BLOB NOT NULL,
  -- 32-bit integers: for each column the indexes in seqs of its first and its last entry.
  spans BLOB NOT NULL
) STRICT;

-- key is segment * 512 plus a part: 32 rows of the bit matrix, one bit for each column.
CREATE TABLE slice (
  key INTEGER PRIMARY KEY,
  bits BLOB NOT NULL
) STRICT;
