/** Slices whose gates look at a request of a route, in this order: the first that answers ends it. */
export const GATE_ORDER = [
  "maintenance", // a route that is down tells so to everyone, and costs nothing
  "methods", // 405 before anything is read of a request that can never pass
  "limits", // 413 and 431: sizes are known from the head
  "cors", // a preflight carries no credentials, so it is answered before they are asked for
  "consumers", // 401: who is it
  "authorization", // 403: may they
  "callouts", // 403: a decision point outside agrees; asked only for those who may
  "rate-limit", // 429: shapes traffic within seconds, without a store
  "quotas", // last: a unit is spent only on a request that will proceed
  "cache", // an answer that is kept needs no upstream; it counts against budgets all the same
] as const;

/** Slices that change answers, in this order. */
export const RESPONSE_ORDER = [
  "transforms", // what the operator says of fields comes before what standards say of them
  "compression", // of the body as it will be seen
  "deprecation", // after the upstream's own Link
  "accept-vary",
  "cors", // after compression, so that Vary is folded once more
  "security-headers", // last: nothing may take them away again
] as const;
