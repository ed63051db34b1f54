// Tested by ../../test/engine-raw.test.ts
import { parseHostPort } from "@headworks/host-patterns";
import { fieldValue, NO_BODY, readRefusedHead, removeField } from "@headworks/http1";
import type { Http1Error } from "@headworks/http1";
import type { RequestMessage } from "#exchange/exchange.ts";
import { invalidRequest } from "./client-failures.ts";
import type { ReceivedHead } from "./exchange-client.ts";
import { MAGIC_HOST } from "./proxy-services.ts";
import type { ExchangePlan, TunnelBase } from "./request-plan.ts";
import { parseAbsoluteTarget, shownTarget } from "./target.ts";
import type { ShownTarget } from "./target.ts";

/** A request that goes nowhere, since its head is no valid HTTP; its entry says so. */
export interface RefusedRequest {
  readonly head: ReceivedHead;
  readonly request: RequestMessage;
  readonly plan: ExchangePlan & { kind: "failure" };
}

/**
 * What to record of a refused head: undefined where it cannot be told which URL was asked for, and for pages of our own.
 * Bytes that no URL has are percent-encoded in the record.
 * @param text  what came of the head, one character per byte
 */
export function refusedRequest(
  text: string,
  error: Http1Error,
  base: TunnelBase | undefined,
): RefusedRequest | undefined {
  const read = readRefusedHead(text);
  if (read === undefined) return undefined;
  const { method, target, version, fields } = read;
  const place = placeOf(target, method, fieldValue(fields, "host"), base);
  if (place === undefined || place.host === MAGIC_HOST) return undefined;
  removeField(fields, "proxy-authorization");
  const path = place.path.replaceAll(/[^!-~]/gu, encoded);
  const shown = path === place.path ? "" : "; its entry has bytes percent-encoded that no target may have";
  const failure = invalidRequest(`The request is not valid HTTP: ${error.message}${shown}`, error);
  const { scheme, host, port } = place;
  return {
    head: { method, fields, framing: NO_BODY, upgrade: undefined, keepAlive: false },
    request: { method, scheme, host, port, path, version: `HTTP/${version}`, fields, trailers: undefined },
    plan: { kind: "failure", failure: { ...failure, status: error.status } },
  };
}

function placeOf(
  target: string,
  method: string,
  hostField: string | undefined,
  base: TunnelBase | undefined,
): ShownTarget | undefined {
  if (base === undefined || !target.startsWith("/")) {
    const parsed = parseAbsoluteTarget(target, method);
    return typeof parsed === "string" ? shownTarget(target) : parsed;
  }
  const named = parseHostPort(hostField ?? "");
  const host = "issue" in named ? base.host : named.host;
  const port = "issue" in named ? base.port : (named.port ?? base.port);
  return base.host === MAGIC_HOST ? undefined : { scheme: base.scheme, host, port, path: target };
}

function encoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}
