import type { Settings, UpstreamTest, UpstreamTestResult, upstreamOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { hostPortText, parseHostPort } from "@headworks/host-patterns";
import { ApiError, validationError } from "#api/api-error.ts";
import type { ProbeRequest, ProbeResult, ProbeRoute } from "#exchange/outgoing.ts";
import type { Slice, SliceHost } from "#slice.ts";

const DEFAULT_TARGET = "https://example.com/";

/** Tests the upstream proxy before traffic depends on it. */
export function createUpstreamSlice(host: SliceHost, probe: ProbeRoute): Slice<typeof upstreamOperations> {
  return { name: "upstream", operations: createUpstreamOperations(host, probe) };
}

function createUpstreamOperations(
  { settings }: Pick<SliceHost, "settings">,
  probe: ProbeRoute,
): Handlers<typeof upstreamOperations> {
  return {
    testUpstream: async ({ body, signal }) => {
      const written = body?.target ?? DEFAULT_TARGET;
      const target = readTarget(written);
      if (typeof target === "string") throw validationError([{ path: "body/target", message: target }]);
      const tested = proxyOf(body, settings.configured.upstream_proxy);
      const startedMs = performance.now();
      const result = await probe({ ...tested, target, signal });
      return { status: 200, body: resultOf(written, tested, result, performance.now() - startedMs) };
    },
  };
}

type TestedProxy = Pick<ProbeRequest, "proxy" | "credentials" | "bypass">;

function proxyOf(body: UpstreamTest | undefined, configured: Settings["upstream_proxy"]): TestedProxy {
  const given = body?.proxy;
  if (given === undefined) {
    const { protocol, host, port, no_proxy_hosts: bypass } = configured;
    if (host === "" || port === 0) {
      const message = "No upstream proxy is configured: weir serve --upstream-proxy HOST:PORT";
      throw new ApiError("VALIDATION_ERROR", message, { details: [{ path: "body/proxy", message }] });
    }
    return {
      proxy: { protocol, host, port },
      credentials: credentialsOf(configured.auth_username, configured.auth_password),
      bypass,
    };
  }
  const { protocol = "http", port } = given;
  const address = parseHostPort(hostPortText(bareHost(given.host), port));
  if ("issue" in address) {
    throw validationError([{ path: "body/proxy/host", message: `must be a host. ${address.issue}` }]);
  }
  const proxy = { protocol, host: address.host, port };
  const username = given.auth_username ?? null;
  const isConfigured =
    protocol === configured.protocol &&
    proxy.host === configured.host &&
    port === configured.port &&
    username === configured.auth_username;
  // The password is write-only, so a test of the configured proxy may omit it.
  const password = given.auth_password ?? (isConfigured ? configured.auth_password : null);
  return { proxy, credentials: credentialsOf(username, password), bypass: [] };
}

function credentialsOf(username: string | null, password: string | null): ProbeRequest["credentials"] {
  return username === null || username === "" ? undefined : { username, password: password ?? "" };
}

function bareHost(host: string): string {
  const text = host.trim().toLowerCase();
  return text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
}

function resultOf(
  target: string,
  { proxy }: TestedProxy,
  { via, steps, failure }: ProbeResult,
  durationMs: number,
): UpstreamTestResult {
  return {
    ok: failure === undefined,
    target,
    via,
    proxy: { ...proxy },
    duration_ms: rounded(durationMs),
    steps: steps.map(({ name, ok, detail, durationMs: tookMs }) => ({
      name,
      ok,
      detail,
      duration_ms: rounded(tookMs),
    })),
    error: failure === undefined ? null : { code: failure.code, message: failure.message },
  };
}

function rounded(value: number): number {
  return Math.max(0, Math.round(value * 100) / 100);
}

/** Parses a target, a URL or `host:port`; returns an error message for anything else. */
export function readTarget(written: string): ProbeRequest["target"] | string {
  const text = written.trim();
  if (!text.includes("://")) {
    const address = parseHostPort(text);
    if ("issue" in address) return `must be an http or https URL, or host:port. ${address.issue}`;
    if (address.port === undefined) return "must be an http or https URL, or host:port; the port is missing";
    return { host: address.host, port: address.port, secure: false, path: undefined };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    return "must be an http or https URL, or host:port";
  }
  const secure = url.protocol === "https:";
  const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (port === 0) return "must not have port 0";
  return { host, port, secure, path: `${url.pathname}${url.search}` };
}
