import type { AutoSaveStatus, ConfigField, LogStatus, MirrorStatus } from "@headworks/capture-contract";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import type { StatusTone } from "./section.tsx";

/** Status of a part of the service, in one sentence. */
export interface Status {
  readonly tone: StatusTone;
  readonly text: string;
}

type Named = Pick<ConfigField, "name" | "value" | "running">;

/** Running and configured value of a setting; both undefined for unknown settings. */
function valuesOf(fields: readonly Named[], name: string): { readonly running: unknown; readonly configured: unknown } {
  const field = fields.find((each) => each.name === name);
  return { running: field?.running, configured: field?.value };
}

/** Status of the SOCKS listener. Weir does not start if it cannot listen, so a running listener is listening. */
export function socksStatus(fields: readonly Named[]): Status {
  const on = valuesOf(fields, "enable_socks");
  if (on.running !== true) {
    return on.configured === true
      ? { tone: "waiting", text: "Off; enabled after a restart" }
      : { tone: "idle", text: "Off: SOCKS clients cannot connect" };
  }
  const name = valuesOf(fields, "socks_auth_username").running;
  const whom = typeof name === "string" && name !== "" ? `with the credentials of ${name}` : "without a password";
  const port = String(valuesOf(fields, "socks_port").running);
  return on.configured === true
    ? { tone: "good", text: `Accepting clients on port ${port}, ${whom}` }
    : { tone: "waiting", text: `Accepting clients on port ${port} until restart, ${whom}` };
}

const ANY_ADDRESS = new Set(["0.0.0.0", "::", "[::]"]);
const LOOPBACK = /^(?:127\.|\[?::1\]?$|localhost$)/u;

/**
 * Address of the SOCKS listener for clients, and whether the whole network can use it; null while disabled. `shownHost`
 * is the address at which devices reach this machine.
 */
export function socksAddress(
  fields: readonly Named[],
  shownHost: string,
): { readonly url: string; readonly isOpen: boolean } | null {
  if (valuesOf(fields, "enable_socks").running !== true) return null;
  const host = valuesOf(fields, "host").running;
  const bound = typeof host === "string" ? host : "127.0.0.1";
  const reached = ANY_ADDRESS.has(bound) ? shownHost : bound;
  const name = valuesOf(fields, "socks_auth_username").running;
  const isNamed = typeof name === "string" && name !== "";
  const allowed = valuesOf(fields, "allowed_ips").running;
  const isLimited = Array.isArray(allowed) && allowed.length > 0;
  const shown = reached.includes(":") && !reached.startsWith("[") ? `[${reached}]` : reached;
  return {
    url: `socks5h://${shown}:${String(valuesOf(fields, "socks_port").running)}`,
    isOpen: !isNamed && !isLimited && !LOOPBACK.test(bound),
  };
}

/** URL of the upstream proxy: `socks5://proxy.example:1080`; null without a host or port. */
export function upstreamAddress(fields: readonly Named[], which: "running" | "configured"): string | null {
  const value = (name: string): unknown => valuesOf(fields, `upstream_proxy.${name}`)[which];
  const [protocol, host, port] = [value("protocol"), value("host"), value("port")];
  if (typeof host !== "string" || host === "" || typeof port !== "number" || port === 0) return null;
  return `${String(protocol)}://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}

export function upstreamStatus(fields: readonly Named[]): Status {
  const on = valuesOf(fields, "upstream_proxy.enabled");
  const running = upstreamAddress(fields, "running");
  const configured = upstreamAddress(fields, "configured");
  if (on.running !== true) {
    return on.configured === true
      ? { tone: "waiting", text: `Direct connections; through ${configured ?? "the proxy"} after restart` }
      : { tone: "idle", text: "Off: servers are contacted directly" };
  }
  const direct = valuesOf(fields, "upstream_proxy.no_proxy_hosts").running;
  const count = Array.isArray(direct) ? direct.length : 0;
  const except = count === 0 ? "" : `, except ${count === 1 ? "one entry" : `${count} entries`} in the list below`;
  if (on.configured !== true) {
    return { tone: "waiting", text: `Servers are contacted through ${running ?? "the proxy"} until restart${except}` };
  }
  return configured === running
    ? { tone: "good", text: `Servers are contacted through ${running ?? "the proxy"}${except}` }
    : {
        tone: "waiting",
        text: `Servers are contacted through ${running ?? "the proxy"}; through ${configured ?? "none"} after restart`,
      };
}

/** The parts of an entry that matter for the upstream proxy. */
interface Passed {
  readonly id: string;
  readonly source: string;
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly response: unknown;
}

/** The newest failure at the upstream proxy, unless a later entry reached a server. Newest first. */
export function proxyProblem<Entry extends Passed>(
  entries: readonly Entry[],
): { readonly entry: Entry; readonly isLatest: boolean } | null {
  let isLatest = true;
  for (const entry of entries) {
    if (entry.failure?.code.startsWith("UPSTREAM_PROXY_") === true) return { entry, isLatest };
    if (entry.source === "upstream" && entry.response !== null) isLatest = false;
  }
  return null;
}

export function logStatus(log: LogStatus): Status {
  if (log.current_file === null) return { tone: "idle", text: "No file: logging to standard output only" };
  if (log.problem !== null) return { tone: "bad", text: "Cannot write the file; retrying every second" };
  const waits = log.restart_pending.length > 0 ? "; some settings require a restart" : "";
  return { tone: "good", text: `Written to ${log.current_file.path}${waits}` };
}

export function trafficLogText(log: LogStatus): string {
  const { enabled, level, host_filter: hosts } = log.debug_logging;
  if (!enabled) return "not logged";
  const whose = hosts.length === 0 ? "all hosts" : hosts.length === 1 ? (hosts[0] ?? "") : `${hosts.length} patterns`;
  const isHidden = log.verbosity === "warn" || log.verbosity === "error" || log.verbosity === "silent";
  if (isHidden) return `nothing: only level ${log.verbosity} is logged`;
  return `${level} of ${whose}, ${formatCount(log.traffic_events.logged)} events since start`;
}

export function archivesText(log: LogStatus): string {
  const size = log.archived_files.reduce((sum, file) => sum + file.size_bytes, 0);
  if (log.archived_count === 0) return "none yet";
  return `${formatCount(log.archived_count)} of at most ${formatCount(log.max_files)}, ${formatBytes(size)}`;
}

export function mirrorStatus(mirror: MirrorStatus): Status {
  if (!mirror.enabled) return { tone: "idle", text: "Off: no files are written" };
  if (!mirror.writing) return { tone: "bad", text: "On, but files are being dropped" };
  const whose =
    mirror.host_filter === null
      ? "of all hosts"
      : mirror.host_filter.length === 1
        ? `of ${mirror.host_filter[0] ?? ""}`
        : `of hosts matching ${formatCount(mirror.host_filter.length)} patterns`;
  return { tone: "good", text: `On: writing responses ${whose} to ${mirror.output_dir}` };
}

export function autoSaveStatus(autoSave: AutoSaveStatus): Status {
  if (autoSave.saving) return { tone: "waiting", text: "Writing a snapshot" };
  if (autoSave.last_error !== null) return { tone: "bad", text: "Could not save a session" };
  // A setting overridden by flag or environment does not change at restart.
  const isEnabledNext = autoSave.overridden_by["enabled"] === undefined ? autoSave.enabled : autoSave.running;
  if (!autoSave.running) {
    return isEnabledNext
      ? { tone: "waiting", text: "Off; enabled after a restart" }
      : { tone: "idle", text: "Off: snapshots are saved only on request" };
  }
  const next =
    autoSave.next_snapshot === null ? "" : `; next snapshot at ${formatDateTime(Date.parse(autoSave.next_snapshot))}`;
  const until = isEnabledNext ? "" : " until restart";
  return { tone: "good", text: `Saving snapshots at the configured interval${until}${next}` };
}

export function lastSnapshotText(autoSave: AutoSaveStatus): string {
  if (autoSave.last_snapshot === null) return "none since start";
  const entries = autoSave.last_snapshot_entries ?? 0;
  const size = formatBytes(autoSave.last_snapshot_bytes);
  return `${formatDateTime(Date.parse(autoSave.last_snapshot))}, ${formatCount(entries)} ${entries === 1 ? "request" : "requests"}, ${size}`;
}
