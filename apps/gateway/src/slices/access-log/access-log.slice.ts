import { fieldValue } from "@headworks/http1";
import type { Logger } from "pino";
import type { FinishedRequest, RequestContext } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

/** Sampling; failures of the gateway or its upstreams are always logged. */
export interface AccessLogParts {
  readonly log: Logger;
  /** 0 to 1. */
  readonly sample: number;
  /** 0 inclusive to 1 exclusive. */
  readonly random: () => number;
}

/** One line per finished request, without query and field values. */
export function createAccessLog({ log, sample, random }: AccessLogParts): GatewaySlice {
  const access = log.child({ target: "gateway::access" });
  return {
    name: "access-log",
    observer: {
      onFinished: (finished) => {
        if (!access.isLevelEnabled("info")) return;
        if (finished.status < 500 && sample < 1 && random() >= sample) return;
        access.info(lineOf(finished), "access");
      },
    },
  };
}

function lineOf({ request, status, durationMs, sentBytes, isComplete, code }: FinishedRequest): object {
  const { upstream } = request;
  return {
    request_id: request.requestId,
    ...(request.correlationId === request.requestId ? {} : { correlation_id: request.correlationId }),
    method: request.method,
    path: request.path,
    status,
    duration_ms: Math.round(durationMs * 1000) / 1000,
    route: request.route?.name ?? "unrouted",
    consumer: request.consumer?.name ?? "anonymous",
    upstream: upstream?.upstream ?? "",
    endpoint: upstream?.endpoint ?? "",
    attempts: upstream?.attempts ?? 0,
    ...(upstream?.failure === undefined ? {} : { upstream_failure: upstream.failure }),
    rate_limited: request.wasRateLimited,
    broken: request.isBroken,
    shed: request.wasShed,
    client: request.clientAddress,
    ...traceOf(request),
    sent_bytes: sentBytes,
    complete: isComplete,
    ...(code === undefined ? {} : { code }),
  };
}

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** The gateway's trace, or the client's (W3C Trace Context). */
function traceOf({ trace, fields }: RequestContext): object {
  if (trace !== undefined) return { trace_id: trace.traceId };
  const [, traceId] = TRACE.exec(fieldValue(fields, "traceparent") ?? "") ?? [];
  return traceId === undefined ? {} : { trace_id: traceId };
}
