import type { Settings } from "@headworks/capture-contract";
import { canonicalHost, parseAddress, parseNetwork, validateHostPattern } from "@headworks/host-patterns";
import { readClientCertificate, readTlsMinVersion } from "./upstream-tls.ts";

/** A problem of a field beyond its schema. `field` is dotted. */
export interface RuleProblem {
  readonly field: string;
  readonly message: string;
}

const HOST_LISTS = new Set([
  "allowed_api_hosts",
  "ignored_domains",
  "passthrough_domains",
  "upstream_insecure_hosts",
  "upstream_proxy.no_proxy_hosts",
  "mirror.host_filter",
  "debug_logging.host_filter",
]);

/** An empty list says the same as null. */
const NULLABLE_LISTS = new Set(["mirror.host_filter"]);

/** An empty text says the same as null. */
const NULLABLE_PATHS = new Set(["mirror.output_dir", "auto_save.output_dir"]);

/** 0 says the same as null. */
const NULLABLE_COUNTS = new Set(["auto_save.rotate_after_requests", "auto_save.rotate_after_minutes"]);

/** Lists whose case and order matter. */
const EXACT_LISTS = new Set(["map_file_dirs", "mock_body_dirs", "upstream_client_certificates", "tls_min_version"]);

/** Readers of the lists that give values to hosts. */
const HOST_VALUE_READERS: Readonly<Record<string, (entry: string) => object>> = {
  upstream_client_certificates: readClientCertificate,
  tls_min_version: readTlsMinVersion,
};

/** Lists of names that are shown as they were written, and are the same in any case. */
const NAME_LISTS = new Set(["debug_logging.redact_headers"]);

/**
 * The one spelling in which a value is kept: lists trimmed, in lower case, without repetition, sorted; hosts trimmed. Lists
 * whose case and order matter lose repetitions alone.
 */
export function normalizeSetting(field: string, value: unknown): unknown {
  if (Array.isArray(value)) {
    if (EXACT_LISTS.has(field)) return [...new Set(value)];
    if (NAME_LISTS.has(field)) {
      const names = value.map(String);
      const keys = names.map((name) => name.toLowerCase());
      return names.filter((_name, at) => keys.indexOf(keys[at] ?? "") === at);
    }
    const entries = value.map((entry) => String(entry).trim().toLowerCase()).filter((entry) => entry !== "");
    if (entries.length === 0 && NULLABLE_LISTS.has(field)) return null;
    return [...new Set(entries)].sort();
  }
  if (value === 0 && NULLABLE_COUNTS.has(field)) return null;
  if (typeof value !== "string") return value;
  if (field === "host" || field === "api_host" || field === "upstream_proxy.host") return bareHost(value);
  if (field === "public_ip") return value.trim() === "" ? null : bareHost(value);
  if (NULLABLE_PATHS.has(field)) return value === "" ? null : value;
  return value;
}

/** Rules about the meaning of one value, which a schema cannot say. The value has its normal spelling. */
export function settingProblem(field: string, value: unknown): string | undefined {
  if (value === null) return undefined;
  if (HOST_LISTS.has(field)) return hostListProblem(field, value as readonly string[]);
  const readHostValue = HOST_VALUE_READERS[field];
  if (readHostValue !== undefined) return hostValueProblem(value as readonly string[], readHostValue);
  if (field === "allowed_ips") {
    const bad = (value as readonly string[]).find((entry) => parseNetwork(entry) === undefined);
    return bad === undefined ? undefined : `${JSON.stringify(bad)} is neither an IP address nor a CIDR block`;
  }
  if (typeof value !== "string") return undefined;
  if (NULLABLE_PATHS.has(field)) {
    return /^(?:\/|[A-Za-z]:[\\/])/.test(value) && !value.includes("\0")
      ? undefined
      : "must be an absolute path or null";
  }
  if (field === "public_ip") return parseAddress(value) ? undefined : "must be an IP address or null";
  if (field === "host" || field === "api_host") {
    return isBindable(value) ? undefined : "must be an IP address or a host name";
  }
  if (field === "upstream_proxy.host" && value !== "") {
    return isBindable(value) ? undefined : "must be a host without scheme and port";
  }
  return undefined;
}

/** Rules between fields. */
export function settingsProblems(settings: Settings): RuleProblem[] {
  const problems: RuleProblem[] = [];
  const upstream = settings.upstream_proxy;
  if (upstream.enabled && upstream.host === "") {
    problems.push({ field: "upstream_proxy.host", message: "is required when the upstream proxy is enabled" });
  }
  if (upstream.enabled && upstream.port === 0) {
    problems.push({ field: "upstream_proxy.port", message: "is required when the upstream proxy is enabled" });
  }
  if (upstream.auth_password !== null && upstream.auth_username === null) {
    problems.push({ field: "upstream_proxy.auth_password", message: "needs upstream_proxy.auth_username" });
  }
  if (settings.socks_auth_password !== null && settings.socks_auth_username === null) {
    problems.push({ field: "socks_auth_password", message: "needs socks_auth_username" });
  }
  return problems;
}

function hostListProblem(field: string, entries: readonly string[]): string | undefined {
  for (const entry of entries) {
    const problem = validateHostPattern(entry);
    if (problem !== undefined) return `${JSON.stringify(entry)}: ${problem.replace(/\.$/, "")}`;
    // A pattern for every name would take away the protection against DNS rebinding that this list is part of.
    if (field === "allowed_api_hosts" && /^[*.]+$/.test(entry)) {
      return `${JSON.stringify(entry)} would allow every name`;
    }
  }
  return undefined;
}

function hostValueProblem(entries: readonly string[], readEntry: (entry: string) => object): string | undefined {
  for (const entry of entries) {
    const reading = readEntry(entry);
    if ("problem" in reading) return `${JSON.stringify(entry)}: ${String(reading.problem)}`;
  }
  return undefined;
}

function bareHost(text: string): string {
  const trimmed = text.trim();
  const inner = trimmed.startsWith("[") && trimmed.endsWith("]") ? trimmed.slice(1, -1) : trimmed;
  return inner.includes("%") ? inner : canonicalHost(inner);
}

function isBindable(host: string): boolean {
  return parseAddress(host) !== undefined || (/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(host) && host.length <= 253);
}
