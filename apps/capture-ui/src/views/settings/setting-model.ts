import type { ConfigField } from "@headworks/capture-contract";

export type SettingControl =
  | { readonly kind: "switch" }
  | {
      readonly kind: "number";
      readonly minimum: number | null;
      readonly maximum: number | null;
      readonly optional: boolean;
    }
  | { readonly kind: "choice"; readonly options: readonly string[] }
  | { readonly kind: "list"; readonly maxItems: number | null; readonly optional?: boolean }
  | { readonly kind: "secret" }
  /** A mode, or `size:` and a number of MiB. */
  | { readonly kind: "rotation" }
  | { readonly kind: "text"; readonly optional: boolean };

export interface SettingGroup {
  readonly id: string;
  readonly title: string;
  readonly fields: readonly ConfigField[];
}

const GROUPS: readonly (readonly [id: string, title: string, pattern: RegExp])[] = [
  [
    "interception",
    "HTTPS decryption",
    /^(?:intercept_https|enable_h2_downstream|legacy_client_tls|passthrough_domains)$/u,
  ],
  ["recording", "Recording", /^(?:capture_.*|max_requests|max_body_size|max_total_size_mb|ignored_domains)$/u],
  ["origin-tls", "TLS to servers", /^(?:upstream_(?:insecure.*|ca_file|client_certificates)|tls_min_version)$/u],
  ["upstream-proxy", "Upstream proxy", /^upstream_proxy\./u],
  ["listeners", "Listeners", /^(?:host|proxy_port|api_host|api_port|allowed_api_hosts|public_ip|allowed_ips)$/u],
  ["socks", "SOCKS", /^(?:enable_socks|socks_.*)$/u],
  ["rules", "Rules", /^(?:breakpoint_|rewrite_|map_file_|mock_)/u],
  ["scripts", "Scripts", /^script_/u],
  ["limits", "Limits", /^(?!script_).*_(?:timeout|keep_alive)_ms$|^max_header_/u],
  ["mirror", "Mirror", /^mirror\./u],
  ["auto-save", "Auto-save", /^auto_save\./u],
  ["features", "Features", /^disabled_features$/u],
  ["logs", "Logs", /^(?:log_config\.|debug_logging\.|verbose$)/u],
];

/** Settings by group, each exactly once; unknown ones come last. */
export function groupSettings(fields: readonly ConfigField[]): SettingGroup[] {
  const placed = GROUPS.map(([id, title, pattern]) => ({
    id,
    title,
    fields: fields.filter((field) => pattern.test(field.name)),
  }));
  const known = new Set(placed.flatMap((group) => group.fields));
  const rest = fields.filter((field) => !known.has(field));
  return [...placed, { id: "other", title: "Other", fields: rest }].filter((group) => group.fields.length > 0);
}

const LABELS: Readonly<Record<string, string>> = {
  api_host: "API address",
  api_port: "API port",
  host: "Proxy address",
  allowed_ips: "Allowed clients",
  allowed_api_hosts: "Additional API host names",
  public_ip: "Address shown to devices",
  enable_h2_downstream: "HTTP/2 to clients",
  legacy_client_tls: "Legacy TLS to clients",
  intercept_https: "Decrypt HTTPS",
  capture_enabled: "Record traffic",
  max_requests: "Requests to keep",
  max_body_size: "Stored bytes per body",
  max_total_size_mb: "Stored bodies in total, MiB",
  ignored_domains: "Hosts excluded from recording",
  passthrough_domains: "Hosts excluded from decryption",
  max_header_fields: "Headers per request or response",
  max_header_bytes: "Request or response head size, bytes",
  upstream_insecure_hosts: "Hosts excluded from verification",
  upstream_insecure: "Disable certificate verification",
  upstream_ca_file: "Additional root certificates file",
  upstream_client_certificates: "Client certificates",
  tls_min_version: "Minimum TLS version",
  enable_socks: "SOCKS5 listener",
  socks_port: "SOCKS5 port",
  socks_auth_username: "User name",
  socks_auth_password: "Password",
  breakpoint_body_limit: "Breakpoint body limit, bytes",
  rewrite_body_limit: "Rewrite body limit, bytes",
  rewrite_body_wait_ms: "Rewrite body timeout, ms",
  map_file_dirs: "Folders for rewrite files",
  mock_body_dirs: "Folders for mock files",
  script_timeout_ms: "Time limit of a call, ms",
  script_memory_limit_mb: "Memory limit of a script, MiB",
  script_capture_console: "Keep console output",
  script_history_limit: "Runs to keep",
  disabled_features: "Disabled features",
  verbose: "Verbose logging",
  "log_config.enabled": "Write a log file",
  "log_config.rotation": "Rotation",
  "log_config.max_files": "Archived files to keep",
  "log_config.max_file_size_mb": "Maximum file size, MiB",
  "log_config.json_format": "JSON format",
  "log_config.async_writing": "Write the log asynchronously",
  "log_config.async_mode": "When the disk is too slow",
  "log_config.async_buffer_size": "Maximum queued lines",
  "debug_logging.enabled": "Log traffic",
  "debug_logging.level": "Detail level",
  "debug_logging.host_filter": "Hosts to log",
  "debug_logging.redact_headers": "Headers to redact",
  "debug_logging.redact_bodies": "Redact bodies",
  "mirror.enabled": "Write responses to files",
  "mirror.output_dir": "Output directory",
  "mirror.host_filter": "Hosts to mirror",
  "mirror.save_request_bodies": "Include request bodies",
  "auto_save.enabled": "Auto-save",
  "auto_save.interval_seconds": "Seconds between snapshots",
  "auto_save.export_format": "File format",
  "auto_save.output_dir": "Snapshot directory",
  "auto_save.max_backups": "Snapshots to keep",
  "auto_save.rotate_after_requests": "New session after requests",
  "auto_save.rotate_after_minutes": "New session after minutes",
  "upstream_proxy.enabled": "Use an upstream proxy",
  "upstream_proxy.no_proxy_hosts": "Hosts contacted directly",
  "upstream_proxy.auth_username": "User name",
  "upstream_proxy.auth_password": "Password",
};

/** Display name of a setting: `connect_timeout_ms` gives `Connect timeout, ms`. */
export function settingLabel(name: string): string {
  const known = LABELS[name];
  if (known !== undefined) return known;
  const words = (name.split(".").at(-1) ?? name).split("_");
  const unit = words.at(-1) === "ms" || words.at(-1) === "mb" ? words.pop() : undefined;
  const text = words.join(" ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${unit === undefined ? "" : `, ${unit === "mb" ? "MiB" : unit}`}`;
}

interface JsonSchema {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly anyOf?: unknown;
  readonly minimum?: unknown;
  readonly maximum?: unknown;
  readonly maxItems?: unknown;
  readonly "x-secret"?: unknown;
}

export function settingControl(field: Pick<ConfigField, "schema">): SettingControl {
  const outer = (field.schema ?? {}) as JsonSchema;
  const choices: readonly unknown[] = Array.isArray(outer.anyOf) ? outer.anyOf : [];
  const isNull = (schema: unknown): boolean => ((schema ?? {}) as JsonSchema).type === "null";
  const optional = choices.some(isNull);
  const inner = (choices.find((schema) => !isNull(schema)) ?? outer) as JsonSchema;
  if (outer.type === "object") return { kind: "rotation" };
  if (outer["x-secret"] === true || inner["x-secret"] === true) return { kind: "secret" };
  const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
  if (Array.isArray(inner.enum)) return { kind: "choice", options: inner.enum.map(String) };
  switch (inner.type) {
    case "boolean":
      return { kind: "switch" };
    case "integer":
    case "number":
      return { kind: "number", minimum: number(inner.minimum), maximum: number(inner.maximum), optional };
    case "array":
      return { kind: "list", maxItems: number(inner.maxItems), ...(optional ? { optional } : {}) };
    default:
      return { kind: "text", optional };
  }
}

/** Value held by the control: a boolean or text. */
export type Draft = boolean | string;

/** The draft of a value. Secrets start empty. */
export function toDraft(control: SettingControl, value: unknown): Draft {
  switch (control.kind) {
    case "switch":
      return value === true;
    case "list":
      return Array.isArray(value) ? value.map(String).join("\n") : "";
    case "secret":
      return "";
    case "rotation":
      return rotationText(value);
    default:
      return typeof value === "string" || typeof value === "number" ? String(value) : "";
  }
}

export type ParsedDraft =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

function rotationText(value: unknown): string {
  const { mode = "", size_mb: sizeMb } = (value ?? {}) as { mode?: string; size_mb?: number };
  return sizeMb === undefined ? mode : `${mode}:${sizeMb}`;
}

function parsedRotation(draft: string): ParsedDraft {
  const [mode, size] = draft.split(":");
  if (mode !== "size") return { ok: true, value: { mode } };
  const sizeMb = Number(size);
  if (!/^\d+$/u.test(size ?? "") || sizeMb < 1) return { ok: false, message: "Enter a size in MiB" };
  return { ok: true, value: { mode, size_mb: sizeMb } };
}

/** The value of a draft, or its error. The service validates finally. */
export function fromDraft(control: SettingControl, draft: Draft): ParsedDraft {
  if (typeof draft === "boolean") return { ok: true, value: draft };
  switch (control.kind) {
    case "number": {
      const text = draft.trim().replaceAll(/[\s,_](?=\d{3})/gu, "");
      if (text === "") {
        return control.optional ? { ok: true, value: null } : { ok: false, message: "Enter a number" };
      }
      if (!/^-?\d+$/u.test(text) || !Number.isSafeInteger(Number(text))) {
        return { ok: false, message: "Enter a whole number" };
      }
      const value = Number(text);
      if (control.minimum !== null && value < control.minimum) {
        return { ok: false, message: `At least ${control.minimum.toLocaleString("en")}` };
      }
      if (control.maximum !== null && value > control.maximum) {
        return { ok: false, message: `At most ${control.maximum.toLocaleString("en")}` };
      }
      return { ok: true, value };
    }
    case "list": {
      const items = draft.split("\n").map((line) => line.trim());
      const value = [...new Set(items.filter((line) => line !== ""))];
      if (control.maxItems !== null && value.length > control.maxItems) {
        return { ok: false, message: `At most ${control.maxItems.toLocaleString("en")} lines` };
      }
      return { ok: true, value: control.optional === true && value.length === 0 ? null : value };
    }
    case "secret":
      return { ok: true, value: draft === "" ? null : draft };
    case "rotation":
      return parsedRotation(draft);
    case "text":
      return { ok: true, value: control.optional && draft.trim() === "" ? null : draft.trim() };
    default:
      return { ok: true, value: draft };
  }
}

/** Changes as the body of a PATCH: dotted names become nested objects. */
export function patchOf(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(changes)) {
    const [head = name, ...rest] = name.split(".");
    if (rest.length === 0) patch[head] = value;
    else patch[head] = { ...(patch[head] as object | undefined), [rest.join(".")]: value };
  }
  return patch;
}

/** Summary of a value: `off`, `none`, `3 lines`. */
export function valueText(value: unknown): string {
  if (value === true) return "on";
  if (value === false) return "off";
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return "none";
  if (Array.isArray(value)) return value.length === 1 ? "1 line" : `${value.length} lines`;
  if (typeof value === "number" || typeof value === "string") return String(value);
  if (typeof value === "object" && value !== null && "mode" in value) return rotationText(value);
  return JSON.stringify(value) ?? "";
}
