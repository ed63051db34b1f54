// Tested by metrics.slice.test.ts
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { Metrics } from "@headworks/capture-contract";
import type { FinishedExchange } from "./exchange-counts.ts";

/** How slices that leave an annotation are called in the metrics. */
const HIT_NAMES: Readonly<Record<string, keyof Metrics["intercept_hits"]>> = {
  blocklist: "block_list",
  mocks: "mocks",
  rewrites: "rewrites",
  breakpoints: "breakpoints",
  throttle: "throttle",
};
const NO_HITS: readonly (keyof Metrics["intercept_hits"])[] = [];

/** Reports every finished exchange, recorded or not. */
export function createMetricsObserver(onFinished: (exchange: FinishedExchange) => void): Observer {
  return {
    name: "metrics",
    onFinished: (exchange) => onFinished(countsOf(exchange)),
  };
}

function countsOf(exchange: ExchangeView): FinishedExchange {
  const { request, response, requestBody, responseBody, moments, annotations } = exchange;
  return {
    hasFailed: exchange.state.step === "failed",
    isTunnel: exchange.passthrough,
    latencyMs: Math.max(0, moments.ended - moments.started),
    bytesFromClient: requestBody.sizeBytes + headBytes(request.fields, request.method.length + request.path.length),
    bytesToClient: responseBody.sizeBytes + (response ? headBytes(response.fields, response.reason.length + 3) : 0),
    touchedBy:
      annotations === undefined ? NO_HITS : Object.keys(annotations).flatMap((slice) => HIT_NAMES[slice] ?? []),
  };
}

/** Bytes of a head as HTTP/1.1 writes it: `name: value` and a line end each. */
function headBytes(fields: readonly string[], startLineTexts: number): number {
  let sizeBytes = startLineTexts + 12 + 2;
  for (const text of fields) sizeBytes += text.length + 2;
  return sizeBytes;
}
