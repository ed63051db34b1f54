-- From here on `head.request_fields` and `head.response_fields` are either what they were, JSON arrays, or the lines that fields
-- were read from, and `head.tls` is an array of values or what it was, an object. Nothing is rewritten; the number keeps
-- programs away that know only the former.
SELECT 1;
