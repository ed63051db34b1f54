/** Gates of slices run in this order; the first that responds ends the request. */
export const GATE_ORDER = [
  "maintenance", // a route under maintenance refuses everyone, at no cost
  "methods", // 405 before anything is read of a request that can never pass
  "limits", // 413 and 431: sizes are known from the head
  "cors", // a preflight carries no credentials, so it is handled before they are required
  "consumers", // 401: authentication
  "authorization", // 403: authorization
  "callouts", // 403: an external decision point, called only for permitted requests
  "rate-limit", // 429: shapes traffic within seconds, without a store
  "quotas", // last: a unit is spent only on a request that will proceed
  "cache", // a stored response needs no upstream but counts against budgets
] as const;

/** Slices that change responses, in this order. */
export const RESPONSE_ORDER = [
  "transforms", // the operator's fields come before those of standards
  "compression", // of the final body
  "deprecation", // after the upstream's own Link
  "accept-vary",
  "cors", // after compression, so that Vary is folded once more
  "security-headers", // last: nothing may remove them
] as const;
