import { isIP } from "node:net";
import { hostPortText, parseHostPort } from "@headworks/host-patterns";
import { withoutPseudoFields } from "@headworks/http-fields";
import {
  asciiTarget,
  fieldValue,
  type Framing,
  hasField,
  type Http1Error,
  NO_BODY,
  type RawFields,
  readRefusedHead,
  removeField,
  type RequestHead,
  setField,
} from "@headworks/http1";
import { sectionField } from "@headworks/http2";
import type { RequestMessage, Scheme } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Destination } from "#upstream/destination.ts";
import { hasPassed, LOOP_DETECTED, viaOf } from "#upstream/origin-fields.ts";
import { invalidRequest } from "./client-failures.ts";
import { MAGIC_HOST, type ProxyServices } from "./proxy-services.ts";

interface RequestTarget {
  readonly scheme: "http" | "https";
  /** Lower-case name or address, no brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query as sent, at least `/`; `*` for OPTIONS. */
  readonly path: string;
  /** The authority as written, for the Host field. */
  readonly authority: string;
}

/** Parses an absolute-form target (RFC 9112, 3.2.2), or returns a sentence with the error. */
export function parseAbsoluteTarget(target: string, method: string): RequestTarget | string {
  const schemeEnd = target.indexOf("://");
  const scheme = target.slice(0, Math.max(0, schemeEnd)).toLowerCase();
  if (scheme !== "http" && scheme !== "https") {
    return scheme === "" ? "A proxy request needs an absolute URL" : `The scheme ${scheme} cannot be proxied`;
  }
  const rest = target.slice(schemeEnd + 3);
  const authorityEnd = firstOf(rest, "/?#");
  const written = rest.slice(0, authorityEnd);
  // Userinfo must not reach the origin's Host field (RFC 9110, 4.2.4).
  const named = written.slice(written.lastIndexOf("@") + 1);
  // An empty port means the scheme's default (RFC 3986, 3.2.3) and is left out of Host.
  const authority = named.endsWith(":") ? named.slice(0, -1) : named;
  const hostPort = parseHostPort(authority);
  if ("issue" in hostPort) return `The host ${JSON.stringify(authority)} is not valid: ${hostPort.issue}`;
  const after = rest.slice(authorityEnd);
  const fragment = after.indexOf("#");
  const pathAndQuery = fragment === -1 ? after : after.slice(0, fragment);
  const isServerWide = method === "OPTIONS" && pathAndQuery === "";
  const path = isServerWide ? "*" : pathAndQuery.startsWith("/") ? pathAndQuery : `/${pathAndQuery}`;
  return { scheme, host: hostPort.host, port: hostPort.port ?? (scheme === "https" ? 443 : 80), path, authority };
}

/** Parses the `host:port` of CONNECT; the port is required. */
export function parseConnectTarget(target: string): { readonly host: string; readonly port: number } | string {
  const hostPort = parseHostPort(target);
  if ("issue" in hostPort) return `The target ${JSON.stringify(target)} is not valid: ${hostPort.issue}`;
  if (hostPort.port === undefined) return `The target ${JSON.stringify(target)} has no port`;
  return { host: hostPort.host, port: hostPort.port };
}

/** The URL parts shown for a request that is not forwarded. */
interface ShownTarget extends Pick<RequestTarget, "host" | "port" | "path"> {
  readonly scheme: Scheme;
}

/** The URL parts of a target that cannot be served; undefined without a valid host. */
export function shownTarget(target: string): ShownTarget | undefined {
  const [, written = "", authority = "", rest = ""] = TARGET.exec(target) ?? [];
  const [, name = "", port = ""] = AUTHORITY.exec(authority.slice(authority.lastIndexOf("@") + 1)) ?? [];
  const hostPort = parseHostPort(name);
  if ("issue" in hostPort || hostPort.port !== undefined) return undefined;
  const lower = written.toLowerCase();
  const scheme = Object.keys(WEB_PORTS).find((known): known is WebScheme => known === lower) ?? "tcp";
  const shownPort = port === "" && scheme !== "tcp" ? WEB_PORTS[scheme] : portOf(port);
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  return { scheme, host: hostPort.host, port: shownPort, path };
}

type WebScheme = Exclude<Scheme, "tcp">;

const WEB_PORTS: Readonly<Record<WebScheme, number>> = { http: 80, https: 443, ws: 80, wss: 443 };
const TARGET = /^(?:([a-z][a-z\d+.-]*):\/\/)?([^/?#]*)([^#]*)/is;
const AUTHORITY = /^(.*?)(?::([^:\]]*))?$/s;

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port <= 65_535 ? port : 0;
}

function firstOf(text: string, characters: string): number {
  for (let index = 0; index < text.length; index += 1) if (characters.includes(text[index] as string)) return index;
  return text.length;
}

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
  let hostPort: HostPort = hostField ?? base;
  // HTTP/1.0 may omit Host; the forwarded HTTP/1.1 request may not (RFC 9112, 3.2).
  let authority = hostField === undefined && !hasField(head.fields, "host") ? tunnelAuthority(base) : undefined;
  if (head.targetForm === "absolute") {
    const target = parseAbsoluteTarget(head.target, head.method);
    if (typeof target === "string") return refusedTarget(target, head);
    ({ path } = target);
    hostPort = target;
    authority = target.authority;
  }
  const secure = base.scheme === "https";
  const request = message(head, base.scheme, hostPort.host, hostPort.port ?? base.port, path);
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
  return { kind: "refused", status: 400, failure: invalidRequest(message) };
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

/** The plan for a request changed by rules: Host follows a new destination unless a rule set it. */
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

/** A request head independent of the HTTP version. */
export interface ReceivedHead {
  readonly method: string;
  /** As received; undefined for a head that was refused. */
  readonly target?: string | undefined;
  readonly fields: RawFields;
  readonly framing: Framing;
  /** Lower-cased token of a valid upgrade offer. */
  readonly upgrade: string | undefined;
  readonly keepAlive: boolean;
}

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/u;

type StatusFailure = Failure & { readonly status: number };

/** A request with an invalid head: it is recorded but not forwarded. */
interface RefusedRequest {
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
  return recorded(
    { ...read, framing: NO_BODY },
    shownTargetOf(target, method, fieldValue(fields, "host"), base),
    failure,
  );
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
  return recorded({ method, version: "2", fields, framing }, shownTargetOf(target, method, authority, base), failure);
}

interface RefusedHead {
  readonly method: string;
  readonly version: "1.0" | "1.1" | "2";
  readonly fields: RawFields;
  readonly framing: Framing;
}

function recorded(
  { method, version, fields, framing }: RefusedHead,
  target: ShownTarget | undefined,
  failure: StatusFailure,
): RefusedRequest | undefined {
  if (target === undefined || target.host === MAGIC_HOST) return undefined;
  removeField(fields, "proxy-authorization");
  const path = target.path.replaceAll(/[^!-~]/gu, encoded);
  const shown = path === target.path ? "" : "; its entry has bytes percent-encoded that no target may have";
  const { scheme, host, port } = target;
  return {
    head: { method, fields, framing, upgrade: undefined, keepAlive: false },
    request: { method, scheme, host, port, path, version: `HTTP/${version}`, fields, trailers: undefined },
    plan: { kind: "failure", failure: { ...failure, message: `${failure.message}${shown}` } },
  };
}

function shownTargetOf(
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
