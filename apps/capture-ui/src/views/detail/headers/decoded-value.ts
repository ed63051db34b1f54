import { isNumeric } from "@headworks/json";
import { decodeJwt, parseAuthorization, parseCookies, parseSetCookie } from "@headworks/http-fields";
import type { Jwt } from "@headworks/http-fields";

/** A header value decoded in the browser; nothing is verified or sent. */
export interface DecodedValue {
  /** Short text beside the value. */
  readonly mark: string;
  readonly tone: "accent" | "warning" | "error";
  /** Name and value per line. */
  readonly details: readonly (readonly [name: string, value: string])[];
}

const TOKEN = /\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/u;

/** Decodes credentials, cookies and tokens; null for other values. */
export function decodeValue(name: string, value: string, nowMs: number): DecodedValue | null {
  switch (name.toLowerCase()) {
    case "authorization":
    case "proxy-authorization":
      return decodeCredentials(value, nowMs) ?? decodeToken(value, nowMs);
    case "cookie": {
      const cookies = parseCookies(value);
      const pairs = cookies.map((cookie) => [cookie.name, cookie.value] as const);
      return { mark: cookies.length === 1 ? "1 cookie" : `${cookies.length} cookies`, tone: "accent", details: pairs };
    }
    case "set-cookie":
      return decodeSetCookie(value, nowMs);
    default:
      return decodeToken(value, nowMs);
  }
}

function decodeCredentials(value: string, nowMs: number): DecodedValue | null {
  const credentials = parseAuthorization(value);
  switch (credentials.kind) {
    case "basic":
      return {
        mark: `Basic, ${credentials.username === "" ? "no user name" : credentials.username}`,
        tone: "accent",
        details: [
          ["user name", credentials.username],
          ["password", credentials.password],
        ],
      };
    case "bearer":
      return credentials.jwt === undefined ? null : describeJwt(credentials.jwt, nowMs);
    case "other":
      if (credentials.parameters.length === 0) return null;
      return {
        mark: credentials.scheme,
        tone: "accent",
        details: credentials.parameters.map(([name, text]) => [name, text] as const),
      };
  }
}

function decodeToken(value: string, nowMs: number): DecodedValue | null {
  const token = TOKEN.exec(value)?.[0];
  const jwt = token === undefined ? undefined : decodeJwt(token);
  return jwt === undefined ? null : describeJwt(jwt, nowMs);
}

function describeJwt(jwt: Jwt, nowMs: number): DecodedValue {
  const expires = jwt.expiresAtMs;
  const isExpired = expires !== undefined && expires <= nowMs;
  const isEarly = jwt.notBeforeMs !== undefined && jwt.notBeforeMs > nowMs;
  const when =
    expires === undefined
      ? "no expiry"
      : isExpired
        ? `expired ${span(nowMs - expires)} ago`
        : `expires in ${span(expires - nowMs)}`;
  return {
    mark: `JWT, ${isEarly ? "not valid yet" : when}`,
    tone: isExpired || isEarly ? "warning" : "accent",
    details: [
      ...Object.entries(jwt.header).map(([name, part]) => [`header ${name}`, show(part, name)] as const),
      ...Object.entries(jwt.payload).map(([name, part]) => [name, show(part, name)] as const),
      ["signature", jwt.signature === "" ? "none: the token is unsigned" : "not verified"] as const,
    ],
  };
}

function decodeSetCookie(value: string, nowMs: number): DecodedValue {
  const cookie = parseSetCookie(value);
  const expires = cookie.maxAgeSeconds === undefined ? cookie.expiresMs : nowMs + cookie.maxAgeSeconds * 1000;
  const isRemoved = expires !== undefined && expires <= nowMs;
  const life = expires === undefined ? "Session cookie" : isRemoved ? "removed" : `expires in ${span(expires - nowMs)}`;
  const details: [string, string][] = [
    ["name", cookie.name],
    ["value", cookie.value],
    ...cookie.attributes.map((attribute): [string, string] => [attribute.name, attribute.value ?? "yes"]),
  ];
  return { mark: `${cookie.name}: ${life}`, tone: isRemoved ? "warning" : "accent", details };
}

const TIME_CLAIMS = new Set(["exp", "iat", "nbf", "auth_time"]);

function show(value: unknown, name: string): string {
  const seconds = isNumeric(value) && TIME_CLAIMS.has(name) ? Number(value) : undefined;
  if (seconds !== undefined && Math.abs(seconds) < 8.64e12) {
    return `${String(value)} (${new Date(seconds * 1000).toISOString().replace("T", " ").replace(".000Z", " UTC")})`;
  }
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A duration in its largest unit: `11 min`, `3 h`, `40 d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  for (const [unit, size] of [
    ["y", 31_536_000],
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
  ] as const) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}
