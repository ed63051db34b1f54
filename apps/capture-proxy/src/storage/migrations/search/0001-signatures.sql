-- Everything here is made from the traffic database and may be deleted at any time. A change of how signatures are
-- made is a migration that empties both tables.

-- One run of entries that were indexed together.
CREATE TABLE segment (
  number INTEGER PRIMARY KEY,
  columns INTEGER NOT NULL,
  -- 64-bit floats: the numbers of the entries, ascending.
  seqs BLOB NOT NULL,
  -- 32-bit integers: a mark of each entry, to notice that a number means another entry now.
  marks BLOB NOT NULL,
  -- 32-bit integers: for each column the places in seqs of its first and its last entry.
  spans BLOB NOT NULL
) STRICT;

-- key is segment * 512 plus a part: 32 rows of the bit matrix, one bit for each column.
CREATE TABLE slice (
  key INTEGER PRIMARY KEY,
  bits BLOB NOT NULL
) STRICT;
