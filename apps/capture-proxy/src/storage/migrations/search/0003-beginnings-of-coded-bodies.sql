-- Bodies that decode to more than a search looks at are indexed by their beginning from here on, like others: what was
-- indexed without them is made again.
DELETE FROM segment;
DELETE FROM slice;
