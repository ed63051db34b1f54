-- From now on, bodies that decode to more than a search reads are indexed by their beginning, like others: the index
-- without them is rebuilt.
DELETE FROM segment;
DELETE FROM slice;
