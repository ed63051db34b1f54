import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { entryOptions } from "../../scripts/entry-options.ts";
import type { CommandLine } from "../capture/pinning.ts";
import type { Site } from "./site.ts";

/** Features that a row requires beyond forwarding. */
export interface Demand {
  readonly isSecure: boolean;
  /** HTTP/2 towards clients, by ALPN. */
  readonly isHttp2: boolean;
  /** Total number of routes; requests match the last one. */
  readonly routes: number;
  /** Requests have the key of a consumer. */
  readonly hasConsumer: boolean;
  /** The consumer has budgets. */
  readonly hasQuota: boolean;
}

/** A running gateway that is to load another configuration. */
export interface Reload {
  readonly site: Site;
  readonly port: number;
  readonly demand: Demand;
  readonly pid: number;
  /** From 1; each number gives another configuration. */
  readonly count: number;
}

/** One of the compared programs. */
export interface Contender {
  readonly name: string;
  /** Undefined if it is not installed. */
  readonly version: () => string | undefined;
  /** True if it supports a row. */
  readonly can: (demand: Demand) => boolean;
  /** The command for a port, after writing its files. */
  readonly command: (site: Site, port: number, demand: Demand) => CommandLine;
  /** Undefined if impossible in one process of our own. */
  readonly reload?: (reload: Reload) => void;
}

const repository = join(import.meta.dirname, "../..");
const SLUICE = join(repository, "apps/gateway/bin/sluice.js");
const peersDirectory = join(repository, "bench/peers");

/** The key of all requests. */
export const API_KEY = "bench-key";

function output(command: string, args: readonly string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? (stdout + stderr).split("\n")[0] : undefined;
}

const onlyPlainProxying = ({ isSecure, routes, hasConsumer }: Demand): boolean =>
  !isSecure && routes === 1 && !hasConsumer;

const sluice: Contender = {
  name: "sluice",
  version: () => "0.1.0",
  can: () => true,
  command: (site, port, demand) => {
    const file = join(site.directory, `sluice-${port}.yaml`);
    writeFileSync(file, JSON.stringify(sluiceDocument(site, port, demand)));
    const environment = demand.hasQuota ? [`GATEWAY_STATE_DB=${join(site.directory, `state-${port}.db`)}`] : [];
    return {
      command: "env",
      args: [
        ...environment,
        "GATEWAY_LOG=warn",
        process.execPath,
        ...entryOptions(SLUICE),
        SLUICE,
        "serve",
        "-c",
        file,
      ],
    };
  },
  reload: ({ site, port, demand, pid, count }) => {
    const document = JSON.stringify(sluiceDocument(site, port, demand, `reloaded-${count}`));
    writeFileSync(join(site.directory, `sluice-${port}.yaml`), document);
    process.kill(pid, "SIGHUP");
  },
};

/** The baseline of rows with quotas: the same requests of the same consumer. */
export const WITHOUT_QUOTA: Contender = {
  ...sluice,
  name: "sluice, no quota",
  command: (site, port, demand) => sluice.command(site, port, { ...demand, hasQuota: false }),
};

function sluiceDocument(
  site: Site,
  port: number,
  { isSecure, routes, hasConsumer, hasQuota }: Demand,
  lastRoute = "all",
): object {
  const tls = { cert_file: site.certificateFile, key_file: site.keyFile };
  const others = Array.from({ length: routes - 1 }, (_, at) => ({
    name: `other-${at}`,
    service: "origin",
    match: { path: { type: "prefix", value: `/team-${at}/service-${at}` } },
    action: { type: "proxy" },
  }));
  return {
    listeners: [
      {
        name: "public",
        address: "127.0.0.1",
        port,
        idle_timeout_ms: 600_000,
        ...(isSecure ? { protocol: "https", tls } : {}),
      },
    ],
    upstreams: [{ name: "origin", endpoints: [{ address: "127.0.0.1", port: site.originPort }], connection_cap: 256 }],
    services: [{ name: "origin", upstream: "origin" }],
    routes: [
      ...others,
      {
        name: lastRoute,
        service: "origin",
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
      },
    ],
    ...(hasConsumer
      ? {
          consumers: [
            {
              name: "bench",
              credentials: [{ type: "api_key", key: API_KEY }],
              ...(hasQuota ? { quotas: { daily_requests: 1_000_000_000, monthly_requests: 1_000_000_000 } } : {}),
            },
          ],
        }
      : {}),
  };
}

const nginx: Contender = {
  name: "nginx",
  version: () => output("nginx", ["-v"])?.replace("nginx version: ", ""),
  can: ({ routes, hasConsumer }) => routes === 1 && !hasConsumer,
  command: (site, port, { isSecure, isHttp2 }) => {
    const file = join(site.directory, `nginx-${port}.conf`);
    const tls = isSecure ? `ssl_certificate ${site.certificateFile}; ssl_certificate_key ${site.keyFile};` : "";
    writeFileSync(
      file,
      `worker_processes 1; daemon off; pid ${file}.pid; error_log ${file}.err;
worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
  client_body_temp_path ${file}.body; proxy_temp_path ${file}.proxy;
  upstream origin { server 127.0.0.1:${site.originPort}; keepalive 256; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port}${isSecure ? " ssl" : ""}${isHttp2 ? " http2" : ""} backlog=8192; ${tls}
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Request-Id $request_id; } } }
`,
    );
    return { command: "nginx", args: ["-c", file] };
  },
  reload: ({ pid }) => void process.kill(pid, "SIGHUP"),
};

const haproxy: Contender = {
  name: "haproxy",
  version: () => output("haproxy", ["-v"])?.replace(/ - .*/, ""),
  can: onlyPlainProxying,
  command: (site, port) => {
    const file = join(site.directory, `haproxy-${port}.cfg`);
    writeFileSync(
      file,
      `global
  nbthread 1
  maxconn 12000
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend f
  bind 127.0.0.1:${port}
  option forwardfor
  default_backend b
backend b
  server s 127.0.0.1:${site.originPort}
`,
    );
    return { command: "haproxy", args: ["-db", "-f", file] };
  },
};

const caddy: Contender = {
  name: "caddy",
  version: () => output("caddy", ["version"]),
  can: ({ routes, hasConsumer }) => routes === 1 && !hasConsumer,
  command: (site, port, { isSecure }) => {
    const file = join(site.directory, `Caddyfile-${port}`);
    mkdirSync(join(site.directory, "caddy"), { recursive: true });
    const tls = isSecure ? `  tls ${site.certificateFile} ${site.keyFile}\n` : "";
    writeFileSync(
      file,
      `{\n  admin off\n  auto_https off\n  storage file_system ${site.directory}/caddy\n}\n${isSecure ? "https" : "http"}://127.0.0.1:${port} {\n${tls}  reverse_proxy 127.0.0.1:${site.originPort}\n}\n`,
    );
    return { command: "env", args: ["GOMAXPROCS=1", "caddy", "run", "--adapter", "caddyfile", "--config", file] };
  },
};

/** Not a gateway: the cost of the runtime's sockets. */
const bareRelay: Contender = {
  name: "bare-relay",
  version: () => process.version,
  can: onlyPlainProxying,
  command: (site, port) => ({
    command: process.execPath,
    args: [join(import.meta.dirname, "bare-relay.ts"), String(port), String(site.originPort)],
  }),
};

/** An npm proxy as a script of a few lines, run in the folder with the installed peers. */
function scripted(name: string, script: (originPort: number, port: number) => string): Contender {
  const manifest = join(peersDirectory, "node_modules", name, "package.json");
  return {
    name,
    version: () =>
      existsSync(manifest) ? (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version : undefined,
    can: onlyPlainProxying,
    command: (site, port) => ({
      command: "env",
      args: ["-C", peersDirectory, process.execPath, "--input-type=module", "-e", script(site.originPort, port)],
    }),
  };
}

/** Sluice first. */
export const CONTENDERS: readonly Contender[] = [
  sluice,
  nginx,
  haproxy,
  caddy,
  scripted(
    "fast-gateway",
    (originPort, port) =>
      `import gateway from "fast-gateway";
await gateway({ routes: [{ prefix: "", target: "http://127.0.0.1:${originPort}" }] }).start(${port}, "127.0.0.1");`,
  ),
  scripted(
    "fast-proxy",
    (originPort, port) =>
      `import { createServer } from "node:http"; import fastProxy from "fast-proxy";
const { proxy } = fastProxy({ base: "http://127.0.0.1:${originPort}", undici: { connections: 256, pipelining: 1 } });
createServer((request, response) => proxy(request, response, request.url, {})).listen(${port}, "127.0.0.1");`,
  ),
  scripted(
    "@fastify/http-proxy",
    (originPort, port) =>
      `import fastify from "fastify"; import proxy from "@fastify/http-proxy";
const app = fastify(); app.register(proxy, { upstream: "http://127.0.0.1:${originPort}" });
await app.listen({ port: ${port}, host: "127.0.0.1" });`,
  ),
  bareRelay,
];
