import type { ErrorCode } from "@headworks/capture-contract";
import type { Access } from "@headworks/contract-kit";
import {
  canonicalHost,
  compileHostPatterns,
  isLoopback,
  isUnspecified,
  parseAddress,
  parseHostPort,
} from "@headworks/host-patterns";

/** The input of the gate, sent by the client except for `localAddress`. */
export interface GateRequest {
  readonly method: string;
  /** Request target as sent. */
  readonly target: string;
  /** Every Host field of the request. */
  readonly hosts: readonly string[];
  readonly origin: string | undefined;
  /** `X-Forwarded-Proto` as sent. Another site's page cannot add it without a preflight, which is refused. */
  readonly forwardedProto: string | undefined;
  readonly secFetchSite: string | undefined;
  readonly secFetchMode: string | undefined;
  /** A WebSocket handshake. */
  readonly isUpgrade: boolean;
  /** This machine's end of the connection. */
  readonly localAddress: string | undefined;
}

/** Allowed Host names besides loopback and the address of the connection. */
export interface AllowedHosts {
  /** `api_host` as configured. */
  readonly boundHost: string;
  readonly allowedApiHosts: readonly string[];
  readonly publicIp: string | null;
}

type GateDecision =
  | { readonly kind: "pass" }
  | {
      readonly kind: "refuse";
      readonly code: Extract<ErrorCode, "BAD_REQUEST" | "HOST_NOT_ALLOWED" | "CROSS_SITE">;
      readonly message: string;
    };

const PASS: GateDecision = { kind: "pass" };

/** Decides whether a request may come from its source, before anything else reads it. Pure. */
export type Gate = (request: GateRequest) => GateDecision;

/**
 * Protects against web pages in the user's browser, which can reach loopback but cannot set these fields: the Host must
 * be ours (against DNS rebinding), and the request must come from our own pages or from no page.
 */
export function compileGate(allowed: AllowedHosts): Gate {
  const names = compileHostPatterns(allowed.allowedApiHosts, "focus");
  const exact = new Set(
    [allowed.boundHost, allowed.publicIp ?? ""]
      .filter((host) => host !== "" && !isUnspecified(host))
      .map(canonicalHost),
  );
  const isOurs = (host: string, localAddress: string | undefined): boolean => {
    const name = canonicalHost(host);
    if (name === "localhost" || name.endsWith(".localhost") || isLoopback(name)) return true;
    if (exact.has(name) || names.matches(name)) return true;
    return localAddress !== undefined && isSameAddress(name, localAddress);
  };
  return (request) => {
    if (!request.target.startsWith("/")) return refuse("BAD_REQUEST", "The request target must be a path");
    const [host, ...others] = request.hosts;
    if (others.length > 0) return refuse("BAD_REQUEST", "The request has more than one Host");
    const parsed = parseHostPort(host ?? "");
    if ("issue" in parsed || !isOurs(parsed.host, request.localAddress)) {
      return refuse("HOST_NOT_ALLOWED", "This Host is not one of this service; add it to allowed_api_hosts");
    }
    return isCrossSite(request, host ?? "") ? refuse("CROSS_SITE", "The request comes from another site") : PASS;
  };
}

function refuse(code: "BAD_REQUEST" | "HOST_NOT_ALLOWED" | "CROSS_SITE", message: string): GateDecision {
  return { kind: "refuse", code, message };
}

function isCrossSite(request: GateRequest, host: string): boolean {
  if (request.origin !== undefined && !isOwnOrigin(request, host)) return true;
  const site = request.secFetchSite;
  if (site === undefined || site === "same-origin" || site === "none") return false;
  return !isPageVisit(request);
}

/** The listener uses plain HTTP; behind a proxy that terminates TLS, the page's scheme is https. */
function isOwnOrigin({ origin, forwardedProto }: GateRequest, host: string): boolean {
  const scheme = forwardedProto?.toLowerCase() === "https" ? "https" : "http";
  return origin?.toLowerCase() === `${scheme}://${host.toLowerCase()}`;
}

/** A link to the UI is harmless: the page has its own origin, and the linking site cannot read it. */
function isPageVisit(request: GateRequest): boolean {
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (!isRead || request.isUpgrade || request.secFetchMode !== "navigate" || request.origin !== undefined) return false;
  return !isApiPath(pathOf(request.target));
}

/** The path of an origin-form target. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

/** API paths in every spelling that some layer may accept; the UI's documents are never served there. */
export function isApiPath(path: string): boolean {
  return /^\/+(?:api|ws|metrics|health)(?:[/.;]|$)/i.test(decodedOnce(path));
}

function decodedOnce(path: string): string {
  return path.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function isSameAddress(name: string, localAddress: string): boolean {
  const left = parseAddress(name);
  const right = parseAddress(localAddress);
  return left !== undefined && right !== undefined && left.value === right.value;
}

/** Header fields of all responses, including refusals. */
export const SECURITY_FIELDS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "frame-src 'self' blob:",
    "media-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
  "Cache-Control": "no-store",
};

/** The caller. `scopes` are `resource:permission` texts, with `*` for either part. */
export interface Principal {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** Returns the caller, or undefined without credentials. Throws ApiError for invalid ones. */
export type Identify = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
) => Promise<Principal | undefined> | Principal | undefined;

/** The caller of all requests if authentication is off. */
export const LOCAL_ADMIN: Principal = { name: "local", scopes: ["*:*"] };

type Authorization = "allowed" | "unauthenticated" | "forbidden";

/** Whether a caller may run an operation: compares its `access` with the caller's scopes. */
export function authorize(access: Access, principal: Principal | undefined): Authorization {
  if (access === "public") return "allowed";
  if (principal === undefined) return "unauthenticated";
  const [resource = "", permission = ""] = access.split(":");
  return principal.scopes.some((scope) => covers(scope, resource, permission)) ? "allowed" : "forbidden";
}

function covers(scope: string, resource: string, permission: string): boolean {
  const [ofResource, ofPermission, ...rest] = scope.split(":");
  return (
    rest.length === 0 &&
    (ofResource === "*" || ofResource === resource) &&
    (ofPermission === "*" || ofPermission === permission)
  );
}

/**
 * The reason why an API on this address must not start: without authentication, everyone who reaches the address can
 * read captured passwords. `isInsecureAllowed` is `--insecure-api`.
 */
export function apiExposureProblem(options: {
  readonly apiHost: string;
  readonly isAuthenticated: boolean;
  readonly isInsecureAllowed: boolean;
}): string | undefined {
  const { apiHost, isAuthenticated, isInsecureAllowed } = options;
  if (isAuthenticated || isInsecureAllowed || apiHost === "localhost" || isLoopback(apiHost)) return undefined;
  return `Everyone who can reach ${apiHost} could use the API: bind it to 127.0.0.1 (--api-host), or pass --insecure-api if the network is trusted`;
}
