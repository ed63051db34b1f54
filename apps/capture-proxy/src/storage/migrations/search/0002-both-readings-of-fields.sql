-- From now on, fields are indexed in both readings of their octets: the earlier index is rebuilt.
DELETE FROM segment;
DELETE FROM slice;
