import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Id, Timestamp } from "./primitives.ts";

const milliseconds = nullable(Type.Number());

/** Many replays of one request. */
export const ReplayBatch = strictObject(
  {
    id: Id,
    saved_request_id: nullable(Type.String()),
    source_entry_id: nullable(Type.String()),
    state: oneOf(["running", "done", "cancelled", "interrupted"], {
      description: "`interrupted`: the service stopped before it completed",
    }),
    iterations: Type.Integer(),
    concurrency: Type.Integer(),
    delay_ms: nullable(Type.Integer()),
    total: Type.Integer({ description: "Completed replays" }),
    succeeded: Type.Integer({ description: "Replays with a response, whatever its status" }),
    failed: Type.Integer(),
    min_ms: milliseconds,
    max_ms: milliseconds,
    avg_ms: milliseconds,
    p50_ms: milliseconds,
    p90_ms: milliseconds,
    p95_ms: nullable(Type.Number({ description: "Nearest rank over the replays with a response" })),
    p99_ms: milliseconds,
    histogram: Type.Array(strictObject({ from_ms: Type.Number(), to_ms: Type.Number(), count: Type.Integer() }), {
      description: "Histogram of durations, at most 20 equal slices",
    }),
    statuses: Type.Record(Type.String(), Type.Integer(), { description: "Count of each status" }),
    errors: Type.Array(strictObject({ code: Type.String(), message: Type.String(), count: Type.Integer() }), {
      description: "Most frequent first; `message` is the first one's",
    }),
    started_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { $id: "ReplayBatch" },
);
export type ReplayBatch = Static<typeof ReplayBatch>;
