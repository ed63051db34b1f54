import { reasonPhrase } from "@headworks/http-fields";
import { asciiTarget, NO_BODY } from "@headworks/http1";
import type { BufferBudget, DeadlineSweep } from "@headworks/sockets";
import type { Logger } from "pino";
import type { Generations } from "#config/generations.ts";
import { environmentNumber } from "#listener/environment-numbers.ts";
import type { ListenerSet } from "#listener/listener-set.ts";
import type { ListenerFacts, Peer } from "#request/client-stream.ts";
import { RequestContext } from "#request/context.ts";
import { errorResponse } from "#request/response-sender.ts";
import { X_REQUEST_ID } from "#request/forwarded-fields.ts";
import type { Generation } from "#request/generation.ts";
import type { Response } from "#request/phases.ts";
import type { Pipeline } from "#request/pipeline.ts";
import { newRequestId } from "#request/request-id.ts";
import { canonicalTarget, checkPath } from "#routing/request-path.ts";

/** Why a target may not be routed or forwarded; undefined if it may. */
export function targetProblem(target: string): string | undefined {
  const verdict = checkPath(target);
  return verdict === "ok" ? undefined : `The path of the request cannot be used: ${verdict}`;
}

/** Responses for the gateway's own paths, before routing; `/metrics` only on listeners that have it. */
export function reservedResponse(
  request: RequestContext,
  isReady: () => boolean,
  metricsText: () => Promise<string>,
): Response | undefined | Promise<Response> {
  switch (request.path) {
    case "/healthz":
      return envelope(200, "ok", "ok", request.requestId);
    case "/readyz":
      return isReady()
        ? envelope(200, "ready", "ready", request.requestId)
        : envelope(503, "not_ready", "not ready", request.requestId);
    case "/metrics":
      return hasMetrics(request) ? metricsResponse(metricsText()) : undefined;
    default:
      return undefined;
  }
}

/** By the running document, not the one of the connection. */
function hasMetrics({ generation, listener }: RequestContext): boolean {
  return generation.document.listeners.some(({ name, metrics }) => name === listener.name && metrics === true);
}

async function metricsResponse(text: Promise<string>): Promise<Response> {
  return { status: 200, fields: ["Content-Type", "text/plain; version=0.0.4; charset=utf-8"], body: await text };
}

function envelope(status: number, code: string, message: string, requestId: string): Response {
  const error = { code, message, request_id: requestId };
  return { status, fields: ["Content-Type", "application/json"], body: JSON.stringify({ error }) };
}

/** Creates the services with which listeners turn heads into requests of the running generation. */
export function connectionServices(
  generations: Generations,
  pipeline: Pipeline,
  deadlines: DeadlineSweep,
  buffers: BufferBudget,
  environment: Readonly<Record<string, string | undefined>>,
  log: Logger,
): ConstructorParameters<typeof ListenerSet>[0]["services"] {
  return {
    deadlines,
    buffers,
    onDefect: (error) => log.error({ err: error }, "A connection of a client failed"),
    limits: {
      fieldCount: environmentNumber(environment, "GATEWAY_HTTP1_MAX_HEADERS"),
      headBytes: environmentNumber(environment, "GATEWAY_HTTP1_MAX_HEADER_BYTES"),
    },
    request: (head, listener, peer, nowMs, stream) => {
      const generation = generations.current;
      if (generation === undefined) throw new Error("A listener accepted a request before a generation was published");
      const sentTarget = head.targetForm === "absolute" ? originForm(head.target) : head.target;
      const request = new RequestContext({
        generation,
        listener,
        peer,
        startedMs: nowMs,
        version: stream.version,
        method: head.method,
        target: canonicalTarget(asciiTarget(sentTarget)),
        sentTarget,
        authority: head.authority,
        fields: head.fields,
        framing: head.framing,
        upgrade: head.upgrade,
      });
      pipeline.handle(request, stream);
    },
    refusal: (code, message, listener, peer) => {
      const requestId = newRequestId();
      const response = errorResponse(message === undefined ? { code } : { code, message }, requestId);
      const body = String(response.body);
      const fields = [...response.fields];
      const generation = generations.current;
      (generation?.requestIdField ?? X_REQUEST_ID).pushIds(fields, { requestId, correlationId: requestId });
      if (generation !== undefined) {
        const request = unreadRequest(generation, listener, peer, requestId);
        pipeline.refused(request, response.status, code, Buffer.byteLength(body));
      }
      return { status: response.status, reason: reasonPhrase(response.status), fields, body };
    },
  };
}

/** Placeholder for a malformed request, none of whose data is trusted. */
function unreadRequest(generation: Generation, listener: ListenerFacts, peer: Peer, requestId: string): RequestContext {
  const request = new RequestContext({
    generation,
    listener,
    peer,
    startedMs: performance.now(),
    version: "1.1",
    method: "",
    target: "",
    authority: undefined,
    fields: [],
    framing: NO_BODY,
  });
  request.requestId = requestId;
  request.correlationId = requestId;
  return request;
}

/** Path and query of `http://host/path?query`; the authority is already extracted. */
function originForm(target: string): string {
  const pathAt = target.indexOf("/", target.indexOf("://") + 3);
  const queryAt = target.indexOf("?");
  if (pathAt !== -1 && (queryAt === -1 || pathAt < queryAt)) return target.slice(pathAt);
  return queryAt === -1 ? "/" : `/${target.slice(queryAt)}`;
}
