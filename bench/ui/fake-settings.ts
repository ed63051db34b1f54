import type { ConfigField, DetailedHealth, operations, ProxyConfig } from "@headworks/capture-contract";
import type { OperationOutput } from "@headworks/contract-kit";

/** A plausible configuration. */
export function fakeConfig(): ProxyConfig {
  return {
    proxy_port: 8888,
    api_port: 3001,
    host: "127.0.0.1",
    api_host: "127.0.0.1",
    allowed_api_hosts: [],
    public_ip: null,
    intercept_https: true,
    enable_h2_downstream: true,
    legacy_client_tls: false,
    max_requests: 100_000,
    max_body_size: 20_971_520,
    max_total_size_mb: null,
    capture_request_bodies: true,
    capture_response_bodies: true,
    capture_enabled: true,
    ignored_domains: [],
    passthrough_domains: ["pinned.bank.example"],
    upstream_insecure_hosts: [],
    upstream_insecure: false,
    upstream_ca_file: null,
    upstream_client_certificates: [],
    tls_min_version: [],
    allowed_ips: [],
    connect_timeout_ms: 10_000,
    idle_timeout_ms: 300_000,
    head_timeout_ms: 60_000,
    max_header_fields: 2000,
    max_header_bytes: 262_144,
    upstream_keep_alive_ms: 4000,
    breakpoint_body_limit: 5_242_880,
    rewrite_body_limit: 10_485_760,
    rewrite_body_wait_ms: 30_000,
    map_file_dirs: [],
    mock_body_dirs: [],
    disabled_features: [],
    script_timeout_ms: 5000,
    script_memory_limit_mb: 10,
    script_capture_console: true,
    script_history_limit: 10_000,
    enable_socks: false,
    socks_port: 1080,
    socks_auth_username: null,
    socks_auth_enabled: false,
    access_control_enabled: false,
    upstream_proxy: {
      enabled: false,
      protocol: "http",
      host: "",
      port: 0,
      auth_username: null,
      no_proxy_hosts: [],
      auth_enabled: false,
    },
    mirror: { enabled: false, output_dir: null, host_filter: null, save_request_bodies: false },
    auto_save: {
      enabled: false,
      interval_seconds: 300,
      export_format: "har",
      output_dir: null,
      max_backups: 10,
      rotate_after_requests: null,
      rotate_after_minutes: null,
    },
    log_config: {
      enabled: true,
      rotation: { mode: "daily" },
      max_files: 7,
      max_file_size_mb: 100,
      json_format: false,
      async_writing: true,
      async_mode: "drop_newest",
      async_buffer_size: 16_384,
    },
    debug_logging: {
      enabled: false,
      level: "summary",
      host_filter: [],
      redact_headers: ["Authorization", "Cookie", "Set-Cookie"],
      redact_bodies: false,
    },
    shown_host: "127.0.0.1",
  };
}

/** One description per top-level setting. */
export function fakeConfigFields(config: ProxyConfig): ConfigField[] {
  return Object.entries(config).map(([name, value]) => ({
    name,
    applies: name.endsWith("port") ? "restart" : "now",
    source: "default",
    default: value,
    value,
    running: value,
    restart_pending: false,
    description: `What ${name} does`,
    environment: `WEIR_${name.toUpperCase()}`,
    flag: null,
    schema: { type: Array.isArray(value) ? "array" : value === null ? "string" : typeof value },
  }));
}

/** A healthy service. */
export function fakeHealth(): DetailedHealth {
  return {
    healthy: true,
    version: "0.1.0",
    uptime_secs: 4212,
    memory_usage_mb: 92,
    active_connections: 3,
    tier: "community",
    auth_mode: "none",
    auth_required: false,
    license: { licensed: true, plan: null, seats_used: 0, seats_total: null, expires_at: null },
    dependencies: {},
    details: {},
    proxy_address: "127.0.0.1:8888",
    api_address: "127.0.0.1:3001",
  };
}

/** What the set-up page shows. */
export function fakeSetup(): OperationOutput<(typeof operations)["cert"]["getSetup"]> {
  const squares = Array.from({ length: 21 * 21 }, (_, index) =>
    (index * 7919) % 13 < 6 ? `M${index % 21} ${Math.floor(index / 21)}h1v1h-1z` : "",
  ).join("");
  return {
    proxy_address: "127.0.0.1:8888",
    api_address: "127.0.0.1:3001",
    magic_host: "http://weir/",
    command: "npx weir",
    local_only: false,
    qr_svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 23 23"><path fill="#fff" d="M-1 -1h23v23h-23z"/><path d="${squares}"/></svg>`,
    platforms: [
      {
        id: "linux",
        name: "Linux",
        steps: ["Copy the certificate to the system's store", "Update the store"],
        command: "sudo cp ~/.weir/ca.pem /usr/local/share/ca-certificates/weir.crt && sudo update-ca-certificates",
      },
      {
        id: "macos",
        name: "macOS",
        steps: ["Add the certificate to the keychain and trust it"],
        command: "security add-trusted-cert -k ~/Library/Keychains/login.keychain-db ~/.weir/ca.pem",
      },
      {
        id: "android",
        name: "Android",
        steps: ["Set the proxy of the Wi-Fi network", "Open http://weir/", "Install the certificate"],
      },
    ],
    environment: [
      { name: "HTTPS_PROXY", value: "http://127.0.0.1:8888" },
      { name: "NODE_EXTRA_CA_CERTS", value: "/home/me/.weir/ca.pem" },
    ],
  };
}
