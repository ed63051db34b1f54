import { defineOperations, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, Id, IdParams, named, Timestamp } from "./primitives.ts";

/** A program with its own proxy address and session, so that its traffic is separate from all other. */
export const Run = strictObject(
  {
    id: Id,
    session_id: Type.String({
      description: "The session with the traffic of this run's proxy only",
    }),
    session_name: nullable(Type.String()),
    proxy_url: Type.String({
      description: "The proxy of this run, for HTTP, HTTPS and SOCKS5: `http://127.0.0.1:45123`",
    }),
    started_at: Timestamp,
    ended_at: nullable(Timestamp, {
      description: "When the run ended; after that the proxy stays open only for programs that are still running",
    }),
    open_exchanges: Type.Integer({ description: "Exchanges and tunnels of this run in progress" }),
  },
  { $id: "Run" },
);
export type Run = Static<typeof Run>;

export const runsOperations = defineOperations({
  listRuns: {
    method: "GET",
    path: "/runs",
    summary: "List runs whose proxy is open, latest first",
    access: "sessions:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(Run) },
  },
  beginRun: {
    method: "POST",
    path: "/runs",
    summary: "Start a run: open a proxy whose traffic goes into a separate session",
    description:
      "The active session does not change, and traffic of other clients still goes there. A run ends if its client does not call `renew` for 15 minutes.",
    access: "sessions:write",
    body: strictObject({ name: Type.Optional(named("Name of its session")) }),
    bodyOptional: true,
    responses: { 200: Run },
  },
  getRun: {
    method: "GET",
    path: "/runs/{id}",
    summary: "One run",
    access: "sessions:read",
    params: IdParams,
    responses: { 200: Run },
  },
  renewRun: {
    method: "POST",
    path: "/runs/{id}/renew",
    summary: "Keep a run alive",
    access: "sessions:write",
    params: IdParams,
    responses: { 200: Run },
  },
  endRun: {
    method: "POST",
    path: "/runs/{id}/end",
    summary: "End a run after its traffic is stored",
    description: "Waits up to three seconds for exchanges in progress; the session is kept.",
    access: "sessions:write",
    params: IdParams,
    responses: { 200: Run },
  },
});
