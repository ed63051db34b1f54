import { once } from "node:events";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

/** One step and its outcome. */
export interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

export interface ProbeRequest {
  /** `http://127.0.0.1:8888` */
  readonly proxyAddress: string;
  readonly url: string;
  /** The only CA that is trusted. */
  readonly caPem: string;
  readonly signal: AbortSignal;
}

type Socket = IncomingMessage["socket"];

/** The TLS methods of an HTTPS request's socket. */
interface SecureSocket {
  getProtocol(): string | null;
  getPeerCertificate(): { readonly issuer: { readonly CN?: string | string[] } };
}

const TIMEOUT_MS = 5000;
const MAX_BODY_BYTES = 65_536;

/**
 * Requests an HTTPS address through the proxy like a browser: connect, open a tunnel, TLS with a certificate of the given
 * CA, request. Returns the steps up to the first failure; never rejects.
 */
export async function probeInterception(request: ProbeRequest): Promise<ProbeStep[]> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const steps: ProbeStep[] = [];
  let current = "Connect to the proxy";
  const passed = (detail: string, next: string): void => {
    steps.push({ name: current, ok: true, detail });
    current = next;
  };
  let socket: Socket | undefined;
  try {
    const target = new URL(request.url);
    socket = await openTunnel(new URL(request.proxyAddress), target, signal, (detail) =>
      passed(detail, "Open a tunnel"),
    );
    socket.on("error", () => undefined);
    passed(`CONNECT ${target.hostname}:443 was accepted`, "TLS with a certificate of this CA");
    const status = await fetchThrough(socket, target, request.caPem, signal, (detail) =>
      passed(detail, "Get a response"),
    );
    if (status !== 200) throw new Error(`The response has status ${status}`);
    passed("The response has status 200", "");
  } catch (error) {
    steps.push({
      name: current,
      ok: false,
      detail: signal.aborted ? `No response within ${TIMEOUT_MS} ms` : sentence(error),
    });
  } finally {
    socket?.destroy();
  }
  return steps;
}

async function openTunnel(
  proxy: URL,
  target: URL,
  signal: AbortSignal,
  onConnected: (detail: string) => void,
): Promise<Socket> {
  const outgoing = httpRequest({
    host: unbracketed(proxy.hostname),
    port: proxy.port === "" ? 80 : Number(proxy.port),
    method: "CONNECT",
    path: `${target.hostname}:443`,
    headers: { host: `${target.hostname}:443` },
    agent: false,
    signal,
  });
  outgoing.once("socket", (socket) => socket.once("connect", () => onConnected(`Connected to ${proxy.host}`)));
  // An abort also fails requests that are no longer awaited; without a listener that would end the process.
  outgoing.on("error", () => undefined);
  const received = Promise.race([once(outgoing, "connect", { signal }), once(outgoing, "response", { signal })]);
  outgoing.end();
  const [response, socket] = (await received) as [IncomingMessage, Socket | undefined];
  if (response.statusCode === 200 && socket !== undefined) return socket;
  response.resume();
  outgoing.destroy();
  throw new Error(`The proxy responded to CONNECT with status ${response.statusCode}`);
}

async function fetchThrough(
  socket: Socket,
  target: URL,
  ca: string,
  signal: AbortSignal,
  onSecure: (detail: string) => void,
): Promise<number> {
  const outgoing = httpsRequest(target, { socket, servername: target.hostname, ca, agent: false, signal } as Parameters<
    typeof httpsRequest
  >[1] &
    object);
  outgoing.once("socket", (used) => {
    used.once("secureConnect", () => {
      const secure = used as unknown as SecureSocket;
      onSecure(`${secure.getProtocol() ?? "TLS"}, issued by ${String(secure.getPeerCertificate().issuer.CN)}`);
    });
  });
  outgoing.on("error", () => undefined);
  const received = once(outgoing, "response", { signal });
  outgoing.end();
  const [response] = (await received) as [IncomingMessage];
  let sizeBytes = 0;
  for await (const piece of response) {
    sizeBytes += (piece as Buffer).length;
    if (sizeBytes > MAX_BODY_BYTES) break;
  }
  return response.statusCode ?? 0;
}

function sentence(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

function unbracketed(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}
