-- Messages of replay results have `truncated` for their body, like entries.
UPDATE replay_result SET result = json_set(
  result,
  '$.request.truncated',
  json(iif(json_extract(result, '$.request.body_state') = 'truncated', 'true', 'false'))
) WHERE json_type(result, '$.request') = 'object';

UPDATE replay_result SET result = json_set(
  result,
  '$.response.truncated',
  json(iif(json_extract(result, '$.response.body_state') = 'truncated', 'true', 'false'))
) WHERE json_type(result, '$.response') = 'object';
