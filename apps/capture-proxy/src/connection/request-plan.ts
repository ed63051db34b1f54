import { isIP } from "node:net";
import { hostPortText } from "@headworks/host-patterns";
import { asciiTarget, fieldValue, hasField, removeField, setField } from "@headworks/http1";
import type { RequestHead } from "@headworks/http1";
import type { RequestMessage, Scheme } from "#exchange/exchange.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Destination } from "#upstream/destination.ts";
import { hasPassed, LOOP_DETECTED, viaOf } from "#upstream/origin-fields.ts";
import type { Failure } from "#exchange/failure.ts";
import { MAGIC_HOST } from "./proxy-services.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { parseAbsoluteTarget, shownTarget } from "./target.ts";

const VERSIONS = { "1.0": "HTTP/1.0", "1.1": "HTTP/1.1", "2": "HTTP/2" } as const;

/** The destination of a tunnel, for the requests inside it. */
export interface TunnelBase {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  /** The client's SNI name; sent to the origin too. */
  readonly serverName: string | undefined;
  /** The client knows that the origin speaks HTTP/2 without TLS, whatever its own request uses. */
  readonly isHttp2Known?: boolean | undefined;
  /** The Via fields of the CONNECT. */
  readonly via?: readonly string[] | undefined;
  /** The client negotiated HTTP by ALPN. */
  readonly isHttpAgreed?: boolean;
  /** Records a failure of the tunnel that no request's entry shows. */
  readonly failed?: (failure: Failure) => void;
}

/** How a request is to be handled. */
export type ExchangePlan =
  | {
      readonly kind: "forward";
      readonly destination: Destination;
      /** Value for Host; undefined keeps the client's. */
      readonly authority: string | undefined;
      /** HTTP/2 by prior knowledge (RFC 9113, 3.3). */
      readonly isHttp2Known: boolean;
      /** The path as sent, if it has non-ASCII octets, which the entry's path has percent-encoded. */
      readonly sentPath?: string;
    }
  /** Not forwarded; recorded, but rules do not apply. */
  | { readonly kind: "failure"; readonly failure: Failure }
  /** A page of the proxy; not recorded, and rules do not apply. */
  | { readonly kind: "own-page"; readonly response: SyntheticResponse };

export type ForwardPlan = ExchangePlan & { kind: "forward" };

/** A request head of any HTTP version. */
export type PlannedHead = Pick<
  RequestHead,
  "method" | "target" | "targetForm" | "fields" | "fieldLines" | "upgrade"
> & {
  readonly version: "1.0" | "1.1" | "2";
};

export type PlannedRequest =
  | { readonly kind: "planned"; readonly request: RequestMessage; readonly plan: ExchangePlan }
  | { readonly kind: "refused"; readonly status: number; readonly failure: Failure };

interface HostPort {
  readonly host: string;
  readonly port: number | undefined;
}

/**
 * Decides where a request goes and what its entry shows. Inside a tunnel, the target of CONNECT applies; on the
 * proxy's own port the target must be absolute, otherwise the request is for the proxy itself.
 * @param hostField  the parsed Host field; undefined if absent or invalid
 */
export function planRequest(
  head: PlannedHead,
  base: TunnelBase | undefined,
  hostField: HostPort | undefined,
  services: ProxyServices,
  socket: { readonly localAddress?: string | undefined },
): PlannedRequest {
  const planned = base
    ? inTunnel(head, base, hostField, services)
    : head.targetForm === "absolute"
      ? absolute(head, services)
      : toProxyItself(head, hostField, services, socket);
  if (planned.kind === "refused") return planned;
  const isForwarded = planned.plan.kind === "forward";
  if (isForwarded && hasPassed(viaOf(head.fields), services.dialer.viaPseudonym)) {
    return { ...planned, plan: { kind: "failure", failure: LOOP_DETECTED } };
  }
  return withAsciiPath(planned);
}

/** Rules, entries and exports use the percent-encoded path; the origin gets it as sent. */
function withAsciiPath(planned: PlannedRequest & { kind: "planned" }): PlannedRequest {
  const { request, plan } = planned;
  const { path } = request;
  const ascii = asciiTarget(path);
  if (ascii === path) return planned;
  request.path = ascii;
  return plan.kind === "forward" ? { ...planned, plan: { ...plan, sentPath: path } } : planned;
}

function inTunnel(
  head: PlannedHead,
  base: TunnelBase,
  hostField: HostPort | undefined,
  services: ProxyServices,
): PlannedRequest {
  let path = head.target;
  let place: HostPort = hostField ?? base;
  // HTTP/1.0 may omit Host; the forwarded HTTP/1.1 request may not (RFC 9112, 3.2).
  let authority = hostField === undefined && !hasField(head.fields, "host") ? tunnelAuthority(base) : undefined;
  if (head.targetForm === "absolute") {
    const target = parseAbsoluteTarget(head.target, head.method);
    if (typeof target === "string") return refusedTarget(target, head);
    ({ path } = target);
    place = target;
    authority = target.authority;
  }
  const secure = base.scheme === "https";
  const request = message(head, base.scheme, place.host, place.port ?? base.port, path);
  if (base.host === MAGIC_HOST) return ownPage(request, services, secure);
  const { host, port, serverName, via } = base;
  return {
    kind: "planned",
    request,
    plan: {
      kind: "forward",
      destination: { host, port, secure, serverName, via },
      authority,
      isHttp2Known: !secure && (head.version === "2" || base.isHttp2Known === true),
    },
  };
}

/** Host for a tunnel's destination: the SNI name, even if the tunnel was requested by address. */
function tunnelAuthority({ scheme, host, port, serverName }: TunnelBase): string {
  const name = serverName !== undefined && isIP(host) !== 0 ? serverName : host;
  return hostPortText(name, port, scheme === "https" ? 443 : 80);
}

function absolute(head: PlannedHead, services: ProxyServices): PlannedRequest {
  const target = parseAbsoluteTarget(head.target, head.method);
  if (typeof target === "string") return refusedTarget(target, head);
  const { scheme, host, port, path, authority } = target;
  const request = message(withoutCredentials(head), scheme, host, port, path);
  const secure = scheme === "https";
  if (host === MAGIC_HOST) return ownPage(request, services, secure);
  // A forwarding proxy sees the request's own Via; only a tunnel needs it passed separately.
  const via = secure || head.upgrade !== undefined ? viaOf(request.fields) : undefined;
  return {
    kind: "planned",
    request,
    plan: {
      kind: "forward",
      destination: { host, port, secure, serverName: undefined, via },
      authority,
      isHttp2Known: false,
    },
  };
}

/** Credentials for this proxy are neither forwarded nor recorded. */
function withoutCredentials(head: PlannedHead): PlannedHead {
  if (!hasField(head.fields, "proxy-authorization")) return head;
  const fields = [...head.fields];
  removeField(fields, "proxy-authorization");
  return { ...head, fields, fieldLines: undefined };
}

function toProxyItself(
  head: PlannedHead,
  hostField: HostPort | undefined,
  services: ProxyServices,
  socket: { readonly localAddress?: string | undefined },
): PlannedRequest {
  const host = hostField?.host ?? "";
  const isOwn = host === MAGIC_HOST || host === "localhost" || host === socket.localAddress || host === "127.0.0.1";
  if (!isOwn) {
    return refused(
      `This is a proxy: send requests with an absolute URL, as clients configured to use a proxy do, or open http://${MAGIC_HOST}/ through it`,
    );
  }
  return ownPage(message(head, "http", host, hostField?.port ?? 80, head.target), services, false);
}

function message(
  head: PlannedHead,
  scheme: "http" | "https",
  host: string,
  port: number,
  path: string,
): RequestMessage {
  const isWebSocket = head.upgrade !== undefined && isWebSocketRequest(head);
  const shown: Scheme = isWebSocket ? (scheme === "https" ? "wss" : "ws") : scheme;
  return {
    method: head.method,
    scheme: shown,
    host,
    port,
    path,
    version: VERSIONS[head.version],
    fields: head.fields,
    fieldLines: head.fieldLines,
    trailers: undefined,
  };
}

function ownPage(request: RequestMessage, services: ProxyServices, secure: boolean): PlannedRequest {
  const response = services.ownPages({ method: request.method, path: request.path, secure });
  return { kind: "planned", request, plan: { kind: "own-page", response } };
}

function refused(message: string): PlannedRequest & { kind: "refused" } {
  return {
    kind: "refused",
    status: 400,
    failure: { stage: "client-read", side: "client", code: "CLIENT_PROTOCOL", message },
  };
}

/** Recorded under the target's URL if that can be determined and is not ours. */
function refusedTarget(issue: string, head: PlannedHead): PlannedRequest {
  const response = refused(issue);
  const shown = shownTarget(head.target);
  if (shown === undefined || shown.host === MAGIC_HOST) return response;
  const { scheme, host, port, path } = shown;
  const request = { ...message(withoutCredentials(head), "http", host, port, path), scheme };
  return { kind: "planned", request, plan: { kind: "failure", failure: response.failure } };
}

/** Whether a request offers WebSocket; such entries have the `ws` scheme. */
function isWebSocketRequest(head: PlannedHead): boolean {
  return head.upgrade === "websocket" && hasField(head.fields, "sec-websocket-key");
}

/**
 * The plan for a request changed by rules. A new scheme, host or port changes the destination, and Host follows, also
 * in the record, unless a rule set Host.
 */
export function replanned(plan: ForwardPlan, original: Readonly<RequestMessage>, request: RequestMessage): ForwardPlan {
  const isHostSet = fieldValue(original.fields, "host") !== fieldValue(request.fields, "host");
  const isMoved =
    original.scheme !== request.scheme || original.host !== request.host || original.port !== request.port;
  if (!isMoved) return isHostSet ? { ...plan, authority: undefined } : plan;
  const { host, port } = request;
  const secure = request.scheme === "https" || request.scheme === "wss";
  const destination = { host, port, secure, serverName: undefined, via: plan.destination.via };
  const moved = { ...plan, destination, isHttp2Known: false };
  if (isHostSet) return { ...moved, authority: undefined };
  const authority = hostPortText(host, port, secure ? 443 : 80);
  setField(request.fields, "Host", authority);
  return { ...moved, authority };
}
