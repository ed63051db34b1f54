import { ERRORS, type ErrorCode, type Limits, type Route } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import { dryRunReport, type DryRunReport, type Gate, type RequestContext, type Verdict } from "#request/context.ts";

import type { GatewaySlice } from "#slice.ts";

export interface LimitsHost {
  readonly log: Logger;
  /** Counts a refusal ignored by a dry run. */
  readonly onDryRun: (route: string) => void;
}

/**
 * Limits request sizes of a route: 431 for the header, 413 for the body, with the measured value and the limit.
 * Declared lengths are checked before forwarding; bodies of unknown length are measured while streaming.
 */
export function createLimits({ log, onDryRun }: LimitsHost): GatewaySlice {
  const report = dryRunReport(log, "route_limits", onDryRun);
  return {
    name: "limits",
    compile: () => ({
      gateFor: (route: Route): Gate | undefined =>
        route.limits === undefined ? undefined : limitsGate(route.limits, report),
    }),
  };
}

interface Excess {
  readonly code: ErrorCode;
  readonly message: string;
}

function limitsGate(limits: Limits, report: DryRunReport): Gate {
  const {
    max_body_bytes: bodyBytes = Number.POSITIVE_INFINITY,
    max_header_bytes: headerBytes = Number.POSITIVE_INFINITY,
    max_header_count: headerCount = Number.POSITIVE_INFINITY,
    dry_run: isDryRun = false,
  } = limits;
  const measure = (request: RequestContext): Excess | undefined => {
    const { fields, framing } = request;
    const count = fields.length / 2;
    if (count > headerCount) return header(`${count} lines`, headerCount);
    if (headerBytes !== Number.POSITIVE_INFINITY) {
      const bytes = bytesOf(fields);
      if (bytes > headerBytes) return header(`${bytes} bytes`, headerBytes);
    }
    if (framing.kind !== "length" || framing.lengthBytes <= bodyBytes) return undefined;
    const message = `The body is larger than allowed: ${framing.lengthBytes} bytes, at most ${bodyBytes}`;
    return { code: "request_body_too_large", message };
  };
  return {
    check: (request): Verdict => {
      const excess = measure(request);
      if (!isDryRun) {
        request.bodyLimitBytes = bodyBytes;
        return excess;
      }
      if (excess !== undefined) report(request, ERRORS[excess.code].status, excess.message);
      return undefined;
    },
  };
}

const header = (measured: string, allowed: number): Excess => ({
  code: "request_headers_too_large",
  message: `The header is larger than allowed: ${measured}, at most ${allowed}`,
});

/** One character of a field is one byte. */
function bytesOf(fields: readonly string[]): number {
  let bytes = 0;
  for (const text of fields) bytes += text.length;
  return bytes;
}
