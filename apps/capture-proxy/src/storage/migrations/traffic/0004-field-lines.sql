-- From now on `head.request_fields` and `head.response_fields` are either JSON arrays, as before, or the lines that fields
-- were read from, and `head.tls` is an array of values or, as before, an object. Nothing is rewritten; the version keeps
-- programs from opening the file that support only the earlier form.
SELECT 1;
