-- The actions of rules on an entry, and its original messages; only for entries affected by a rule.
CREATE TABLE effect (
  seq INTEGER PRIMARY KEY,
  -- JSON: RuleTrace of the contract, in order
  trace TEXT NOT NULL,
  -- JSON: original heads of changed messages
  original TEXT,
  -- original bodies of replaced ones, as received; NULL: the body is the one that was sent
  request_body BLOB,
  response_body BLOB
);
