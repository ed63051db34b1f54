import { defineOperations, nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static, TSchema } from "typebox";
import { AutoSaveSettings } from "./autosave.ts";
import { LogSettings, TrafficLogSettings } from "./logs.ts";
import { MirrorSettings } from "./mirror.ts";
import { ImportedSections, importQuery } from "./persistence.ts";
import { Timestamp, hostList, hostValues } from "./primitives.ts";
import { UpstreamProxySettings } from "./upstream.ts";

const port = (options: object) => Type.Integer({ minimum: 0, maximum: 65535, ...options });
/** Groups of operations that can be switched off when the service starts. */
export const FEATURES = ["grpc", "scripting"] as const;
export type FeatureName = (typeof FEATURES)[number];

/**
 * Everything that can be set and persisted in `<data_dir>/config.json`. `x-applies` says when a change takes
 * effect: `now`, in the `next-cycle` of a periodic task, or after a `restart`; `x-secret` marks what is never shown.
 */
export const Settings = strictObject({
  proxy_port: port({
    default: 8888,
    "x-applies": "restart",
    description: "Port of the proxy listener; 0 selects a free port",
  }),
  api_port: port({
    default: 3001,
    "x-applies": "restart",
    description: "Port of the API and the web UI; 0 selects a free port",
  }),
  host: Type.String({
    default: "127.0.0.1",
    minLength: 1,
    maxLength: 255,
    "x-applies": "restart",
    description: "Address of the proxy listener",
  }),
  api_host: Type.String({
    default: "127.0.0.1",
    minLength: 1,
    maxLength: 255,
    "x-applies": "restart",
    description: "Address of the API and the web UI",
  }),
  allowed_api_hosts: hostList("Additional host names under which the API may be addressed", "now"),
  public_ip: nullable(Type.String({ maxLength: 64 }), {
    default: null,
    "x-applies": "now",
    description: "Address shown to devices",
  }),
  intercept_https: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Intercept HTTPS; if off, it is tunnelled",
  }),
  enable_h2_downstream: Type.Boolean({
    default: true,
    "x-applies": "restart",
    description: "Offer HTTP/2 on intercepted connections; if off, clients that support only HTTP/2 are refused",
  }),
  legacy_client_tls: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Allow TLS 1.0, TLS 1.1 and CBC suites on intercepted connections, for old devices",
  }),
  max_requests: Type.Integer({
    default: 100_000,
    minimum: 0,
    maximum: 1_000_000,
    "x-applies": "now",
    description: "Maximum number of entries in the active session; 0 = no limit",
  }),
  max_body_size: Type.Integer({
    default: 20_971_520,
    minimum: 0,
    maximum: 1_073_741_824,
    "x-applies": "now",
    description: "Maximum bytes stored of each body",
  }),
  max_total_size_mb: nullable(Type.Integer({ minimum: 1, maximum: 1_048_576 }), {
    default: null,
    "x-applies": "now",
    description:
      "Cap on stored bodies across sessions, in MiB: the oldest entries are dropped, and larger bodies are not stored. Unset = no limit",
  }),
  capture_request_bodies: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Store request bodies",
  }),
  capture_response_bodies: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Store response bodies",
  }),
  capture_enabled: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Record traffic; off = passthrough mode",
  }),
  ignored_domains: hostList("Hosts that are proxied but not recorded"),
  passthrough_domains: hostList("Hosts whose TLS is not intercepted"),
  upstream_insecure_hosts: hostList("Hosts whose certificate is not verified; entries are marked"),
  upstream_insecure: Type.Boolean({
    default: false,
    "x-applies": "now",
    description: "Do not verify any upstream certificate; entries are marked",
  }),
  upstream_ca_file: nullable(Type.String({ maxLength: 4096 }), {
    default: null,
    "x-applies": "restart",
    description: "PEM file with additional trusted roots",
  }),
  upstream_client_certificates: hostValues(
    "Client certificates for hosts that request one: `HOST=FILE`, a PKCS 12 file or PEM with certificate and key; `;key=FILE` for a separate key file, `;passphrase-file=FILE` for an encrypted one. Paths are absolute, the first entry that matches a host applies, and files are read when this is set and at the start",
    4096,
  ),
  tls_min_version: hostValues(
    "Minimum TLS version for individual hosts, `HOST=1.0` to `HOST=1.3`; the first entry that matches a host applies, other hosts need 1.2. Below 1.2, the cipher suites and signatures of that time are offered too",
    300,
  ),
  allowed_ips: hostList(
    "Client addresses or CIDR blocks allowed to use the proxy; empty allows all. Loopback is always allowed",
  ),
  connect_timeout_ms: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 600_000,
    "x-applies": "now",
    description: "Timeout of name resolution, connection and TLS handshake with the origin",
  }),
  idle_timeout_ms: Type.Integer({
    default: 300_000,
    minimum: 1000,
    maximum: 86_400_000,
    "x-applies": "now",
    description: "Maximum time without a byte on an exchange or tunnel before it is closed",
  }),
  head_timeout_ms: Type.Integer({
    default: 60_000,
    minimum: 100,
    maximum: 600_000,
    "x-applies": "now",
    description: "Maximum time for a client to send a request head",
  }),
  max_header_fields: Type.Integer({
    default: 2000,
    minimum: 50,
    maximum: 10_000,
    "x-applies": "now",
    description:
      "Maximum number of fields in a request (beyond: 431) or response (beyond: 502); applies to new connections",
  }),
  max_header_bytes: Type.Integer({
    default: 262_144,
    minimum: 8192,
    maximum: 1_048_576,
    "x-applies": "now",
    description:
      "Maximum bytes of a request head (beyond: 431) or response head (beyond: 502); applies to new connections",
  }),
  upstream_keep_alive_ms: Type.Integer({
    default: 4000,
    minimum: 0,
    maximum: 60_000,
    "x-applies": "now",
    description:
      "How long an idle connection to an origin is kept for the next connection of the same client; 0 closes it with the client's connection",
  }),
  breakpoint_body_limit: Type.Integer({
    default: 5_242_880,
    minimum: 0,
    maximum: 67_108_864,
    "x-applies": "now",
    description: "Maximum bytes of a body that can be edited at a breakpoint; for larger bodies only the head can",
  }),
  rewrite_body_limit: Type.Integer({
    default: 10_485_760,
    minimum: 0,
    maximum: 134_217_728,
    "x-applies": "now",
    description: "Maximum bytes of a decoded body that rewrite rules change; larger bodies are passed on unchanged",
  }),
  rewrite_body_wait_ms: Type.Integer({
    default: 30_000,
    minimum: 100,
    maximum: 600_000,
    "x-applies": "now",
    description: "Maximum time that rewrite rules wait for a complete body; after that it is passed on unchanged",
  }),
  map_file_dirs: Type.Array(Type.String({ minLength: 1, maxLength: 4096, pattern: "^(?:/|[A-Za-z]:[\\\\/])" }), {
    maxItems: 100,
    default: [],
    "x-applies": "now",
    description: "Absolute directories that rewrite rules may serve files from, besides `<data_dir>/map-files`",
  }),
  mock_body_dirs: Type.Array(Type.String({ minLength: 1, maxLength: 4096, pattern: "^(?:/|[A-Za-z]:[\\\\/])" }), {
    maxItems: 100,
    default: [],
    "x-applies": "now",
    description: "Absolute directories that mocks may serve bodies from, besides `<data_dir>/mock-bodies`",
  }),
  disabled_features: Type.Array(oneOf([...FEATURES]), {
    maxItems: FEATURES.length,
    default: [],
    "x-applies": "restart",
    description: `Features that are switched off, with all they would record: ${FEATURES.join(", ")}`,
  }),
  script_timeout_ms: Type.Integer({
    default: 5000,
    minimum: 10,
    maximum: 60_000,
    "x-applies": "now",
    description: "Maximum milliseconds of one call of a script, waiting for its thread included",
  }),
  script_memory_limit_mb: Type.Integer({
    default: 10,
    minimum: 2,
    maximum: 512,
    "x-applies": "now",
    description: "Maximum memory of one script, in mebibytes",
  }),
  script_capture_console: Type.Boolean({
    default: true,
    "x-applies": "now",
    description: "Keep the lines that scripts write with `console`",
  }),
  script_history_limit: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: 1_000_000,
    "x-applies": "now",
    description: "Number of script executions that are kept; the oldest are removed",
  }),
  verbose: Type.Boolean({ default: false, "x-applies": "now", description: "Log at level debug" }),
  enable_socks: Type.Boolean({
    default: false,
    "x-applies": "restart",
    description: "Accept SOCKS5 clients; their connections are tunnelled, never intercepted",
  }),
  socks_port: Type.Integer({
    default: 1080,
    minimum: 1,
    maximum: 65535,
    "x-applies": "restart",
    description: "Port of the SOCKS5 listener",
  }),
  socks_auth_username: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "restart",
    description: "User name required from SOCKS5 clients",
  }),
  socks_auth_password: nullable(Type.String({ maxLength: 255 }), {
    default: null,
    "x-applies": "restart",
    "x-secret": true,
    description: "Password required from SOCKS5 clients; never shown",
  }),
  upstream_proxy: UpstreamProxySettings,
  mirror: MirrorSettings,
  auto_save: AutoSaveSettings,
  log_config: LogSettings,
  debug_logging: TrafficLogSettings,
});
export type Settings = Static<typeof Settings>;

const { auth_password: _hidden, ...shownUpstream } = UpstreamProxySettings.properties;
const {
  verbose: _verbose,
  socks_auth_password: _socksPassword,
  upstream_proxy: _upstream,
  ...shown
} = Settings.properties;

/** The response of GET: settings without secrets, and derived values. */
export const ProxyConfig = strictObject(
  {
    ...shown,
    verbose: Type.Optional(Settings.properties.verbose),
    socks_auth_enabled: Type.Boolean(),
    access_control_enabled: Type.Boolean(),
    upstream_proxy: strictObject({ ...shownUpstream, auth_enabled: Type.Boolean() }),
    shown_host: Type.String({ description: "Address to give to devices" }),
  },
  { $id: "ProxyConfig" },
);
export type ProxyConfig = Static<typeof ProxyConfig>;

/** The fields of a change: each may be left out, and none has a default, which would reset what is not mentioned. */
function changeOf<const P extends Record<string, TSchema>>(properties: P) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const { default: _default, ...rest } = schema as unknown as { default?: unknown };
      return [name, Type.Optional(rest as never)];
    }),
  ) as unknown as { [K in keyof P]: ReturnType<typeof Type.Optional<P[K]>> };
}

/** A partial update. Read-only fields are accepted and ignored; one invalid field refuses it. */
export const ConfigPatch = strictObject({
  ...changeOf(Settings.properties),
  upstream_proxy: Type.Optional(
    strictObject({ ...changeOf(UpstreamProxySettings.properties), auth_enabled: Type.Optional(Type.Boolean()) }),
  ),
  mirror: Type.Optional(strictObject(changeOf(MirrorSettings.properties))),
  auto_save: Type.Optional(strictObject(changeOf(AutoSaveSettings.properties))),
  log_config: Type.Optional(strictObject(changeOf(LogSettings.properties))),
  debug_logging: Type.Optional(strictObject(changeOf(TrafficLogSettings.properties))),
  socks_auth_enabled: Type.Optional(Type.Boolean()),
  access_control_enabled: Type.Optional(Type.Boolean()),
  shown_host: Type.Optional(Type.String()),
});
export type ConfigPatch = Static<typeof ConfigPatch>;

export const ConfigField = strictObject(
  {
    name: Type.String({ description: "Dotted for nested fields" }),
    applies: oneOf(["now", "next-cycle", "restart"]),
    source: oneOf(["default", "file", "environment", "flag"], {
      description:
        "Source of the value at the next start. Flags take precedence over the environment, the environment over the file",
    }),
    default: Type.Unknown(),
    value: Type.Unknown({ description: "Configured value; secrets are `[REDACTED]`" }),
    running: Type.Unknown({ description: "Value in force; differs from `value` while a restart is pending" }),
    restart_pending: Type.Boolean({ description: "`value` takes effect at the next start" }),
    overridden_by: Type.Optional(
      oneOf(["environment", "flag"], {
        description:
          "`value` was changed and is in the file, but the environment or a flag takes precedence at each start: a change that applies now is in effect until then, one that applies after a restart never is",
      }),
    ),
    description: Type.Optional(Type.String()),
    environment: Type.String({ description: "Environment variable" }),
    flag: nullable(Type.String()),
    schema: Type.Unknown({ description: "JSON Schema of the field" }),
  },
  { $id: "ConfigField" },
);
export type ConfigField = Static<typeof ConfigField>;

/** The version of the form of configuration documents; one with a greater number is refused. */
export const CONFIG_DOCUMENT_VERSION = 1;

/** Settings and rules of one Weir, for another one. */
export const ConfigDocument = strictObject(
  {
    version: Type.Integer(),
    exported_at: Timestamp,
    settings: Type.Record(Type.String(), Type.Unknown(), {
      description: "As `PATCH /config` takes them; no passwords",
    }),
    rules: Type.Record(Type.String(), Type.Unknown(), { description: "A bundle, as in `GET /persistence/export`" }),
  },
  { $id: "ConfigDocument" },
);
export type ConfigDocument = Static<typeof ConfigDocument>;

/** The result of importing a configuration document, or of a dry run. */
export const ConfigImport = strictObject(
  {
    success: Type.Boolean(),
    mode: oneOf(["merge", "replace"]),
    dry_run: Type.Boolean(),
    settings: Type.Array(Type.String(), { description: "Names of the settings whose value changes" }),
    sections: ImportedSections,
  },
  { $id: "ConfigImport" },
);
export type ConfigImport = Static<typeof ConfigImport>;

export const configOperations = defineOperations({
  getConfig: {
    method: "GET",
    path: "/config",
    summary: "The proxy's configuration, without secrets",
    access: "config:read",
    responses: { 200: ProxyConfig },
    expose: { mcp: { name: "get_config", readOnly: true } },
  },
  updateConfig: {
    method: "PATCH",
    path: "/config",
    summary: "Change settings, all or nothing",
    description:
      "Persisted atomically. Flags and environment variables take precedence at the next start; `overridden_by` of `GET /config/fields` marks changes of such settings.",
    access: "config:write",
    body: ConfigPatch,
    responses: { 200: ProxyConfig },
  },
  describeConfig: {
    method: "GET",
    path: "/config/fields",
    summary: "Each setting: value, source, when a change applies, whether a restart is pending",
    access: "config:read",
    responses: { 200: Type.Array(ConfigField) },
  },
  exportConfig: {
    method: "GET",
    path: "/config/export",
    summary: "Settings and all rules as one document, without passwords",
    access: "config:read",
    responses: { 200: ConfigDocument },
  },
  importConfig: {
    method: "POST",
    path: "/config/import",
    summary: "Import settings and rules from a document, all or nothing",
    description:
      "The body is the document, or `{config}` with the document as an object, or `{config_json}` with its text, each with `mode` and `dry_run`. Only settings that the document contains change; passwords are kept. A document of a newer version is refused.",
    access: "config:write",
    query: importQuery,
    body: upload(["application/json"], "A document from `GET /config/export`, at most 64 MiB"),
    responses: { 200: ConfigImport },
  },
});
