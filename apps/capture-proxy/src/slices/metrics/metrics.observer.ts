import { isClosedByClient } from "#exchange/exchange.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { Metrics, RuleKind } from "@headworks/capture-contract";
import type { FinishedExchange } from "./exchange-counts.ts";

type HitName = keyof Metrics["intercept_hits"];

/** Names of rule kinds in the metrics. */
const HIT_NAMES: Readonly<Partial<Record<RuleKind, HitName>>> = {
  block: "block_list",
  mock: "mocks",
  rewrite: "rewrites",
  breakpoint: "breakpoints",
  throttle: "throttle",
};
const NO_HITS: readonly HitName[] = [];
const BLOCKED: readonly HitName[] = ["block_list"];

/** Reports every finished exchange, recorded or not. */
export function createMetricsObserver(onFinished: (exchange: FinishedExchange) => void): Observer {
  return {
    name: "metrics",
    onFinished: (exchange) => onFinished(countsOf(exchange)),
  };
}

function countsOf(exchange: ExchangeView): FinishedExchange {
  const { request, response, requestBody, responseBody, moments } = exchange;
  return {
    hasFailed: exchange.state.step === "failed" && !isClosedByClient(exchange),
    isTunnel: exchange.passthrough,
    latencyMs: Math.max(0, moments.ended - moments.started),
    bytesFromClient: requestBody.sizeBytes + headBytes(request.fields, request.method.length + request.path.length),
    bytesToClient: responseBody.sizeBytes + (response ? headBytes(response.fields, response.reason.length + 3) : 0),
    touchedBy: touchedBy(exchange),
  };
}

/** A tunnel refused at CONNECT has no request that could carry a trace. */
function touchedBy({ trace, state }: ExchangeView): readonly HitName[] {
  if (trace !== undefined) return [...new Set(trace.flatMap(({ kind }) => HIT_NAMES[kind] ?? []))];
  return state.step === "failed" && state.failure.code === "BLOCKED" ? BLOCKED : NO_HITS;
}

/** Bytes of a head in HTTP/1.1: `name: value` and a line end each. */
function headBytes(fields: readonly string[], startLineTexts: number): number {
  let sizeBytes = startLineTexts + 12 + 2;
  for (const text of fields) sizeBytes += text.length + 2;
  return sizeBytes;
}
