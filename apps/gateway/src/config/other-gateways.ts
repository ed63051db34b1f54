import { isMap, isScalar, isSeq } from "yaml";
import type { FieldPath } from "./pointer.ts";
import type { Schema } from "./schema-shape.ts";

/** Field names of other gateways by parent, with ours. A name without a dot is in the same mapping. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "": {
    "backends clusters": "upstreams",
    "entrypoints servers": "listeners",
    "frontends rules ingress": "routes",
    users: "consumers",
    "trustedips realipfrom setrealipfrom": "trusted_proxies",
  },
  routes: {
    "path paths uri uris prefix pathprefix": "match.path",
    "host hosts hostname hostnames domains": "match.host",
    "headers query queryparams method": "match",
    "entrypoints listener listeners": "match.listener",
    "protocols schemes scheme": "match.scheme",
    "strippath stripprefix rewrite urirewrite prefixrewrite": "action.rewrite",
    "backend backends upstream upstreams cluster url target to backendrefs": "service",
    "preservehost passhostheader hostrewrite": "upstream_host of the upstream or service",
    "timeout timeouts retries": "timeouts and retries of the upstream",
    "auth authentication": "auth_required",
    "ratelimit ratelimits ratelimiting": "policies, whose entries have rate_limits",
    "maxbodysize clientmaxbodysize bodylimit requestsizelimit": "limits.max_body_bytes",
    "ipwhitelist ipallowlist iprestriction whitelist": "authorization.ip_acl",
    redirect: "action",
  },
  "routes.match": {
    "paths uri uris prefix pathprefix": "path",
    "entrypoints listeners": "listener",
    "protocol protocols": "scheme",
    "hostname hostnames domains": "host",
    "queryparams queryparameters": "query",
  },
  "routes.match.path": {
    "prefix pathprefix exact regex regexp path safe_regex": "type and value, such as { type: prefix, value: /api }",
  },
  "routes.cors": {
    "alloworigins alloworigin origins origin": "allowed_origins",
    "allowmethods methods": "allowed_methods",
    "allowheaders headers": "allowed_headers",
    exposedheaders: "expose_headers",
    credentials: "allow_credentials",
    "maxage preflightmaxage": "max_age_secs",
  },
  upstreams: {
    "servers targets nodes backends hosts members loadassignment": "endpoints",
    "algorithm lb lbpolicy loadbalancing balancer method strategy type": "load_balancer",
    "healthcheck healthchecks": "health, and active_health",
    "circuitbreaker circuitbreakers": "breaker",
    "outlierdetection maxfails passivehealth": "health",
    "host hostheader preservehost passhost passhostheader hostrewrite hostrewriteliteral": "upstream_host",
    "connecttimeout timeout readtimeout sendtimeout writetimeout": "timeouts",
    "maxconnections maxconns keepalivepool": "connection_cap",
    scheme: "protocol",
    "sni servername": "tls.server_name",
    "cacert ca cafile": "trusted_ca_file",
    "dns discovery servicename discoverytype": "dns_discovery",
  },
  "upstreams.endpoints": { "host ip hostname url target socketaddress": "address" },
  "upstreams.retries": {
    "retries numretries maxretries tries count": "attempts",
    "retryon statuses statuscodes": "retry_statuses",
    backoff: "backoff_base_ms",
  },
  "upstreams.tls": {
    sni: "server_name",
    "ca cacert cafile rootcas": "trusted_ca_file",
    "insecureskipverify verify tlsverify skipverify": "trusted_ca_file, since certificates are always verified",
  },
  services: {
    "url backend cluster loadbalancer target": "upstream",
    "preservehost passhostheader": "upstream_host",
    "weighted canary": "split",
  },
  listeners: {
    "bind host ip listen": "address",
    "ssl certificate certificates cert": "tls",
    "proxyproto sendproxy": "proxy_protocol",
  },
  "authorization.ip_acl": { "whitelist allowlist": "allow", "blacklist denylist block": "deny" },
  "policies.rate_limits.requests_per": {
    "second seconds sec": "s",
    "minutes min m": "minute",
    "hours h": "hour",
    "day days": "a quota of the consumer, daily_requests",
  },
  consumers: { "keys apikeys apikey key": "credentials", "username customid": "name", "acls roles": "groups" },
  "routes.limits": { "maxbodysize bodysize maxsize": "max_body_bytes", maxheadersize: "max_header_bytes" },
  "policies.rate_limits": {
    "limit rate average requests": "requests_per",
    "key limitby": "selector",
    period: "requests_per",
  },
};

/** The equivalent of another gateway's field; undefined if unknown. */
export function ownName(fieldPath: FieldPath, key: string): string | undefined {
  const where = fieldPath.filter((step) => typeof step === "string").join(".");
  const own = FIELDS[where === "gateway" ? "" : where.replace(/^.*(?=authorization\.ip_acl$)/, "")];
  const plain = key.toLowerCase().replace(/[^a-z0-9]/g, "");
  return Object.entries(own ?? {}).find(([names]) => names.split(" ").includes(plain))?.[1];
}

/** Enumeration values of other gateways without separators, with the equivalent here. */
const CHOICES: Readonly<Record<string, string>> = {
  "leastconn leastconnections leastconnection leastrequest lc": "least_requests",
  "roundrobin wrr weightedroundrobin rr": "round_robin",
  ewma: "peak_ewma",
  "iphash sourceiphash source clientip": "ip_hash",
  "chash ringhash maglev consistenthash consistenthashing hash": "header_hash",
  "randomtwochoices p2c": "random",
  "http http11": "http1",
  "h2 grpcs": "http2",
  "grpc h2prior": "h2c",
  "forward pass upstream route reverseproxy proxypass": "proxy",
  "return static fixed direct directresponse mock": "respond",
  br: "brotli",
  "tlsv12 tls12 12": "1.2",
  "tlsv13 tls13 13": "1.3",
  "key keyauth apikey token": "api_key",
  "basicauth password": "basic",
  "clientcert certificate tls": "mtls",
  "client ipaddress remoteaddr remoteip": "ip",
  "consumer user apikeyid": "credential",
  day: "daily",
  month: "monthly",
  hour: "hourly",
};

/** The equivalent of another gateway's value if it is among the choices. */
export function ownChoice(text: string, choices: readonly string[]): string | undefined {
  const plain = text.toLowerCase().replace(/[^a-z0-9]/g, "");
  return Object.entries(CHOICES).find(([words, own]) => words.split(" ").includes(plain) && choices.includes(own))?.[1];
}

/** Mappings often written as a single value, by their key. */
const MAPPINGS: Readonly<Record<string, string>> = {
  action: "{ type: proxy }",
  endpoints: "{ address: 10.0.0.1, port: 80 }",
  path: "{ type: prefix, value: /api }",
  requests_per: "{ s: 10 }",
  retries: "{ attempts: 2 }",
  rewrite: "{ type: strip_prefix }",
  timeouts: "{ connect_ms: 5000, read_ms: 30000 }",
};

/** A hint how to write a value of the wrong type, or an empty string. Contains no text of the document. */
export function rightForm(fieldPath: FieldPath, schema: Schema, node: unknown): string {
  const field = String(fieldPath.findLast((step) => typeof step === "string") ?? "");
  if (schema.type === "array" && isMap(node) && (field === "query" || field === "cookies")) {
    return "; write a list of { name, value }";
  }
  if (schema.type === "array" && isScalar(node) && node.value !== null) return "; write a list, in brackets";
  if (schema.type === "object" && isSeq(node) && schema.properties === undefined) return "; write { name: value }";
  if (!isScalar(node)) return "";
  if (schema.type === "object") {
    const written = Object.hasOwn(MAPPINGS, field) ? MAPPINGS[field] : undefined;
    if (written !== undefined) return `; write ${written}`;
    return node.value === true && (schema.required ?? []).length === 0 ? "; write {} for its defaults" : "";
  }
  if (typeof node.value !== "string") return "";
  if (schema.type === "boolean") return booleanForm(node.value);
  return schema.type === "integer" || schema.type === "number" ? numberForm(field, node.value.trim()) : "";
}

function booleanForm(text: string): string {
  if (/^(?:true|on|yes|enabled)$/i.test(text)) return "; write true";
  return /^(?:false|off|no|disabled)$/i.test(text) ? "; write false" : "";
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES: Readonly<Record<string, number>> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

function numberForm(field: string, text: string): string {
  if (/^[0-9]+$/.test(text)) return "; write it without quotes";
  if (/_(?:ms|secs|s)$/.test(field) && /^(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhd]))+$/.test(text)) {
    let totalMs = 0;
    for (const [, count, unit = ""] of text.matchAll(/([0-9.]+)(ms|[smhd])/g)) {
      totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
    }
    const value = field.endsWith("_ms") ? totalMs : totalMs / 1000;
    const unit = field.endsWith("_ms") ? "milliseconds" : "seconds";
    return Number.isSafeInteger(value) ? `; it counts ${unit}, so write ${value}` : `; it counts ${unit}`;
  }
  const [, count, unit = ""] = /^([0-9]+)\s*([bkmg])(?:i?b)?$/i.exec(text) ?? [];
  if (count === undefined || !/_bytes$|^min_size$/.test(field)) return "";
  return `; it counts bytes, so write ${Number(count) * (SIZES[unit.toLowerCase()] ?? 1)}`;
}

/** Words of other gateways for address ranges, with the equivalent here. */
const ADDRESS_WORDS: Readonly<Record<string, string>> = {
  "* all any": "every address is 0.0.0.0/0 and ::/0",
  "localhost loopback": "this machine is 127.0.0.0/8 and ::1",
  "private privateranges private_ranges":
    "private addresses are 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7",
};

/** A hint how to write an invalid network, or an empty string. */
export function networkForm(text: string): string {
  const word = Object.entries(ADDRESS_WORDS).find(([words]) => words.split(" ").includes(text.toLowerCase()))?.[1];
  if (word !== undefined) return `; ${word}`;
  const mask = /^[0-9.]+\/(255(?:\.[0-9]{1,3}){3})$/.exec(text)?.[1];
  if (mask !== undefined) {
    const bits = mask
      .split(".")
      .map((octet) => Number(octet).toString(2).padStart(8, "0"))
      .join("");
    return /^1*0*$/.test(bits) ? `; write the mask as a length, /${bits.lastIndexOf("1") + 1}` : "";
  }
  const stars = /^((?:[0-9]{1,3}\.){1,3})(?:\*\.?)+$/.exec(text)?.[1];
  if (stars !== undefined) {
    const octets = stars.split(".").slice(0, -1);
    return `; write ${[...octets, 0, 0, 0].slice(0, 4).join(".")}/${octets.length * 8}`;
  }
  if (/^[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}\/[0-9]+$/.test(text)) return "; write all four parts of the address";
  if (/^[0-9a-f.:]+\s*-\s*[0-9a-f.:]+$/i.test(text)) return "; a range is written as one network or several";
  return /^[0-9.]+:[0-9]+$|^\[.*\]:[0-9]+$/.test(text) ? "; leave the port out" : "";
}
