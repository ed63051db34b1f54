import { hostPortText } from "@headworks/host-patterns";
import { NO_BODY } from "@headworks/http1";
import { type Moments, newMoments } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ProbeRequest, ProbeResult, ProbeStep } from "#exchange/outgoing.ts";
import type { Destination, Dialled } from "./destination.ts";
import type { Dialer } from "./dial.ts";
import { OriginConnection } from "./origin-connection.ts";
import { ProxyRoutes } from "./proxy-route.ts";

/** Timeout for the origin's response after connecting. */
const RESPONSE_TIMEOUT_MS = 10_000;

type Outcome<T> = { readonly value: T } | { readonly failure: Failure };

/** Dials like an exchange and reports each step with its duration. Never rejects. */
export async function probeRoute(dialer: Dialer, request: ProbeRequest): Promise<ProbeResult> {
  const { target, proxy, credentials, bypass, signal } = request;
  const routes = new ProxyRoutes(proxy, { credentials, bypass });
  const destination: Destination = {
    host: target.host,
    port: target.port,
    secure: target.secure,
    serverName: undefined,
    ...(target.path === undefined ? { tunnel: true } : {}),
  };
  const via = routes.route(destination, dialer.viaPseudonym).kind;
  const moments = newMoments();
  const dialled = await dialTo(dialer.withRoutes(routes), destination, moments, signal);
  if ("failure" in dialled) {
    return { via, steps: failedSteps(via, request, moments, dialled.failure), failure: dialled.failure };
  }
  const steps = passedSteps(via, request, moments, dialled.value);
  if (target.path === undefined) {
    dialled.value.socket.on("error", () => undefined).destroy();
    return { via, steps, failure: undefined };
  }
  const startedMs = performance.now();
  const response = await requestHead(target.path, destination, dialled.value, signal);
  const durationMs = performance.now() - startedMs;
  const hasResponse = "value" in response;
  const detail = hasResponse ? `Status ${response.value}` : response.failure.message;
  return {
    via,
    steps: [...steps, { name: "Get a response", ok: hasResponse, detail, durationMs }],
    failure: hasResponse ? undefined : response.failure,
  };
}

async function dialTo(
  dialer: Dialer,
  destination: Destination,
  moments: Moments,
  signal: AbortSignal,
): Promise<Outcome<Dialled>> {
  const { promise, resolve } = Promise.withResolvers<Outcome<Dialled>>();
  const abandon = dialer.dial(destination, moments, {
    connected: (value) => resolve({ value }),
    failed: (failure) => resolve({ failure }),
  });
  return await unlessAborted(promise, resolve, signal, abandon);
}

async function requestHead(
  path: string,
  destination: Destination,
  dialled: Dialled,
  signal: AbortSignal,
): Promise<Outcome<number>> {
  const { promise, resolve } = Promise.withResolvers<Outcome<number>>();
  const origin = new OriginConnection(destination, dialled, undefined);
  const nothing = (): void => undefined;
  const { host, port, secure } = destination;
  const hostPort = hostPortText(host, port, secure ? 443 : 80);
  origin.send(
    {
      onInformational: nothing,
      onResponseHead: ({ status }) => resolve({ value: status }),
      onResponseData: nothing,
      onResponseTrailers: nothing,
      onProtocolSwitched: nothing,
      onResponseBatch: nothing,
      onResponseEnd: nothing,
      onOriginLost: (_outcome, failure) => resolve({ failure }),
      onOriginDrain: nothing,
    },
    {
      method: "HEAD",
      path,
      fields: ["Host", hostPort, "User-Agent", "weir", "Accept", "*/*", "Connection", "close"],
      fieldLines: undefined,
      framing: NO_BODY,
      upgrade: undefined,
      authority: undefined,
      hasBody: false,
      keepAlive: false,
      isRetry: true,
    },
  );
  origin.sendEnd(undefined);
  origin.flush();
  const message = `${hostPort} did not respond within ${RESPONSE_TIMEOUT_MS} ms`;
  const late: Failure = { stage: "receive", side: "upstream", code: "UPSTREAM_TIMEOUT", message };
  const timer = setTimeout(() => resolve({ failure: late }), RESPONSE_TIMEOUT_MS);
  const outcome = await unlessAborted(promise, resolve, signal, nothing);
  clearTimeout(timer);
  origin.destroy();
  return outcome;
}

async function unlessAborted<T>(
  outcome: Promise<Outcome<T>>,
  resolve: (outcome: Outcome<T>) => void,
  signal: AbortSignal,
  abandon: () => void,
): Promise<Outcome<T>> {
  const onAbort = (): void => {
    abandon();
    resolve({ failure: { stage: "client-read", side: "client", code: "CLIENT_ABORTED", message: "Cancelled" } });
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return await outcome.finally(() => signal.removeEventListener("abort", onAbort));
}

interface Part {
  readonly name: string;
  readonly fromMs: number;
  readonly detail: string;
}

/** The steps that were begun, by their moments. */
function partsOf(via: ProbeResult["via"], { target, proxy }: ProbeRequest, moments: Moments): Part[] {
  const isDirect = via === "direct";
  const hostPort = hostPortText(target.host, target.port);
  const hop = isDirect ? hostPort : hostPortText(proxy.host, proxy.port);
  const whose = isDirect ? "the target" : "the proxy";
  const tlsPeer = isDirect || proxy.protocol !== "https" ? "the target" : "the proxy";
  const parts: Part[] = [
    { name: `Resolve ${whose}`, fromMs: moments.resolveStarted, detail: isDirect ? target.host : proxy.host },
    { name: `Connect to ${whose}`, fromMs: moments.connectStarted, detail: hop },
    { name: "Open a tunnel", fromMs: moments.tunnelStarted, detail: `${proxy.protocol.toUpperCase()} to ${hostPort}` },
    { name: `TLS with ${tlsPeer}`, fromMs: moments.tlsStarted, detail: tlsPeer === "the target" ? hostPort : hop },
  ];
  return parts.filter(({ fromMs }) => fromMs > 0);
}

function timed(parts: readonly Part[], endedMs: number): ProbeStep[] {
  return parts.map(({ name, fromMs, detail }, index) => ({
    name,
    ok: true,
    detail,
    durationMs: (parts[index + 1]?.fromMs ?? endedMs) - fromMs,
  }));
}

function passedSteps(via: ProbeResult["via"], request: ProbeRequest, moments: Moments, dialled: Dialled): ProbeStep[] {
  const steps = timed(partsOf(via, request, moments), moments.upstreamReady);
  return steps.map((step) => {
    if (step.name.startsWith("Connect")) return { ...step, detail: dialled.address };
    if (!step.name.startsWith("TLS with the target") || dialled.tls === undefined) return step;
    const { version, verified, issuer } = dialled.tls;
    return {
      ...step,
      detail: `${version}, ${verified ? `issued by ${issuer ?? "an unknown issuer"}` : "not verified"}`,
    };
  });
}

/** The last step begun is the one that failed. */
function failedSteps(via: ProbeResult["via"], request: ProbeRequest, moments: Moments, failure: Failure): ProbeStep[] {
  const steps = timed(partsOf(via, request, moments), performance.now());
  const last = steps.pop();
  const { message: detail } = failure;
  return [...steps, { name: last?.name ?? "Choose a route", ok: false, detail, durationMs: last?.durationMs ?? 0 }];
}
