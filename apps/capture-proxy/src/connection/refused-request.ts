import { parseHostPort } from "@headworks/host-patterns";
import { withoutPseudoFields } from "@headworks/http-fields";
import { fieldValue, NO_BODY, readRefusedHead, removeField } from "@headworks/http1";
import type { Framing, Http1Error, RawFields } from "@headworks/http1";
import { sectionField } from "@headworks/http2";
import type { RequestMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { invalidRequest } from "./client-failures.ts";
import type { ReceivedHead } from "./exchange-client.ts";
import { MAGIC_HOST } from "./proxy-services.ts";
import type { ExchangePlan, TunnelBase } from "./request-plan.ts";
import { parseAbsoluteTarget, shownTarget } from "./target.ts";
import type { ShownTarget } from "./target.ts";

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/u;

type StatusFailure = Failure & { readonly status: number };

/** A request with an invalid head: it is recorded but not forwarded. */
export interface RefusedRequest {
  readonly head: ReceivedHead;
  readonly request: RequestMessage;
  readonly plan: ExchangePlan & { kind: "failure" };
}

/**
 * The record of a refused head; undefined if its URL cannot be determined, and for the proxy's own pages. Bytes
 * invalid in a URL are percent-encoded.
 * @param text  the head as received, one character per byte
 */
export function refusedRequest(
  text: string,
  error: Http1Error,
  base: TunnelBase | undefined,
): RefusedRequest | undefined {
  const read = readRefusedHead(text);
  if (read === undefined) return undefined;
  const { target, method, fields } = read;
  const message = `The request is not valid HTTP: ${error.message}`;
  const failure: StatusFailure = { ...invalidRequest(message, error), status: error.status };
  return recorded({ ...read, framing: NO_BODY }, placeOf(target, method, fieldValue(fields, "host"), base), failure);
}

/** The same for an HTTP/2 field section, possibly incomplete. `isWhole`: no body follows. */
export function refusedHttp2Request(
  section: readonly string[],
  isWhole: boolean,
  failure: StatusFailure,
  base: TunnelBase | undefined,
): RefusedRequest | undefined {
  const method = sectionField(section, ":method");
  const path = sectionField(section, ":path");
  if (method === undefined || path === undefined || !METHOD.test(method)) return undefined;
  const fields = withoutPseudoFields(section);
  const authority = sectionField(section, ":authority") ?? fieldValue(fields, "host") ?? "";
  const target = base === undefined ? `${sectionField(section, ":scheme") ?? "http"}://${authority}${path}` : path;
  const framing: Framing = isWhole ? NO_BODY : { kind: "chunked" };
  return recorded({ method, version: "2", fields, framing }, placeOf(target, method, authority, base), failure);
}

interface RefusedHead {
  readonly method: string;
  readonly version: "1.0" | "1.1" | "2";
  readonly fields: RawFields;
  readonly framing: Framing;
}

function recorded(
  { method, version, fields, framing }: RefusedHead,
  place: ShownTarget | undefined,
  failure: StatusFailure,
): RefusedRequest | undefined {
  if (place === undefined || place.host === MAGIC_HOST) return undefined;
  removeField(fields, "proxy-authorization");
  const path = place.path.replaceAll(/[^!-~]/gu, encoded);
  const shown = path === place.path ? "" : "; its entry has bytes percent-encoded that no target may have";
  const { scheme, host, port } = place;
  return {
    head: { method, fields, framing, upgrade: undefined, keepAlive: false },
    request: { method, scheme, host, port, path, version: `HTTP/${version}`, fields, trailers: undefined },
    plan: { kind: "failure", failure: { ...failure, message: `${failure.message}${shown}` } },
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
