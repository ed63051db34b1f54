import { defineOperations, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { COUNTED, Id, IdParams, named, Timestamp } from "./primitives.ts";

/** A program whose traffic is told apart from all other: it has a proxy address and a session of its own. */
export const Run = strictObject(
  {
    id: Id,
    session_id: Type.String({
      description: "The session that holds what came through this run's proxy, and nothing else",
    }),
    session_name: nullable(Type.String()),
    proxy_url: Type.String({
      description: "The proxy of this run alone, for HTTP, HTTPS and SOCKS5: `http://127.0.0.1:45123`",
    }),
    started_at: Timestamp,
    ended_at: nullable(Timestamp, {
      description: "Since then the proxy stays open only for programs that were left running",
    }),
    open_exchanges: Type.Integer({ description: "Exchanges and tunnels of this run that are in flight" }),
  },
  { $id: "Run" },
);
export type Run = Static<typeof Run>;

export const runsOperations = defineOperations({
  listRuns: {
    method: "GET",
    path: "/runs",
    summary: "Runs whose proxy is open, latest first",
    access: "sessions:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(Run) },
  },
  beginRun: {
    method: "POST",
    path: "/runs",
    summary: "Open a proxy for one run: its traffic goes into a session of its own",
    description:
      "The active session stays the active one, and whatever other clients send goes there. A run whose client is silent for 15 minutes has ended; `renew` is how it says that it is there.",
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
    summary: "Say that a run goes on",
    access: "sessions:write",
    params: IdParams,
    responses: { 200: Run },
  },
  endRun: {
    method: "POST",
    path: "/runs/{id}/end",
    summary: "End a run, once what it sent is in the store",
    description: "Waits up to three seconds for exchanges in flight; the session stays.",
    access: "sessions:write",
    params: IdParams,
    responses: { 200: Run },
  },
});
