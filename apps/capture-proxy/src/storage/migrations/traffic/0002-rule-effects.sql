-- What rules did to an entry, and its messages as they were before; only for entries that a rule touched.
CREATE TABLE effect (
  seq INTEGER PRIMARY KEY,
  -- JSON: RuleTrace of the contract, in order
  trace TEXT NOT NULL,
  -- JSON: heads of the messages that were changed
  original TEXT,
  -- bodies that were replaced, as they came; NULL: the body is the one that was sent on
  request_body BLOB,
  response_body BLOB
);
