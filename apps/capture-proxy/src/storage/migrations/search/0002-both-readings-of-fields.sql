-- Fields are indexed in both readings of their octets from here on: what was indexed before is made again.
DELETE FROM segment;
DELETE FROM slice;
