import type { Logger } from "pino";
import { requestHeadText, ResponseReader } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { asEgressError, EgressError, timedOut } from "#egress/egress-failure.ts";
import { type EgressUrl, parseEgressUrl } from "#egress/egress-url.ts";
import type { Clock } from "#slice.ts";

interface DiscoveredEndpointParts {
  /** For logs. */
  readonly provider: string;
  readonly issuer: string;
  /** Trusted certificates (PEM) instead of the public roots. */
  readonly roots: readonly string[] | undefined;
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

const FETCH_MS = 5000;
/** Refreshed in the background. */
const REFRESH_MS = 3_600_000;
/** Minimum interval between lookups, however often the endpoint fails. */
const MIN_PAUSE_MS = 5000;
/** Delay after a failed lookup; doubles with each further failure. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;

/**
 * The introspection endpoint from an issuer's metadata (OpenID Connect Discovery 1.0, 4; RFC 8414, 3). Discovered on
 * first use, retained while lookups fail, and looked up again when the endpoint fails.
 */
export class DiscoveredEndpoint {
  readonly #parts: DiscoveredEndpointParts;
  readonly #source: PublishedSource;
  #found: EgressUrl | undefined;
  #refreshAtMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #pauseMs = FIRST_PAUSE_MS;
  #looking: Promise<void> | undefined;

  constructor(parts: DiscoveredEndpointParts) {
    this.#parts = parts;
    const url = metadataUrl(parts.issuer);
    if ("issue" in url) throw new Error(`The issuer of ${parts.provider} was not checked`);
    this.#source = { url, roots: parts.roots, purpose: "introspection" };
  }

  /** The endpoint; undefined while unavailable. Never rejects. */
  async find(): Promise<EgressUrl | undefined> {
    const nowMs = this.#parts.clock.monotonic();
    if (this.#found === undefined) await this.#look(nowMs);
    // Never rejects.
    else if (nowMs >= this.#refreshAtMs) void this.#look(nowMs);
    return this.#found;
  }

  /** The endpoint failed, so it may have moved. */
  markFailed(): void {
    this.#refreshAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Performs or joins a lookup, unless one was made within the minimum interval. */
  async #look(nowMs: number): Promise<void> {
    if (this.#looking !== undefined) return await this.#looking;
    if (nowMs < this.#nextAtMs) return;
    this.#looking = this.#fetch();
    await this.#looking;
    this.#looking = undefined;
  }

  async #fetch(): Promise<void> {
    const { dialer, clock, log, provider, issuer } = this.#parts;
    try {
      const body = await fetchPublished(dialer, this.#source, AbortSignal.timeout(FETCH_MS));
      this.#found = endpointIn(body, issuer);
      this.#pauseMs = FIRST_PAUSE_MS;
      this.#nextAtMs = clock.monotonic() + MIN_PAUSE_MS;
      this.#refreshAtMs = clock.monotonic() + REFRESH_MS;
    } catch (error) {
      this.#nextAtMs = clock.monotonic() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      const { code, message } = asEgressError(error, "bad_answer");
      const facts = { code: "discovery_failed", provider, failure: code, why: message };
      log.warn(facts, "An issuer does not say where its tokens can be asked about");
    }
  }
}

/** The issuer's metadata URL; a trailing slash of the issuer is not doubled. */
export function metadataUrl(issuer: string): ReturnType<typeof parseEgressUrl> {
  if (/[?#]/.test(issuer)) return { issue: "The URL of an issuer has no query and no fragment." };
  return parseEgressUrl(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
}

/** @throws Error for metadata without a trustworthy endpoint; the message does not quote it */
function endpointIn(body: Buffer, issuer: string): EgressUrl {
  const metadata = jsonObject(body);
  if (metadata === undefined) throw new Error("The metadata are no JSON object");
  // Otherwise one issuer could impersonate another (OpenID Connect Discovery 1.0, 4.3).
  if (metadata["issuer"] !== issuer) throw new Error("The metadata are those of another issuer");
  const { introspection_endpoint: text } = metadata;
  if (typeof text !== "string") throw new Error("The metadata name no introspection_endpoint");
  const url = parseEgressUrl(text);
  if ("issue" in url) throw new Error("The introspection_endpoint of the metadata is no URL that can be used");
  if (!url.isSecure && /^https:/i.test(issuer)) throw new Error("The metadata name an endpoint without TLS");
  return url;
}

/** A URL at which a token issuer publishes keys or metadata. */
interface PublishedSource {
  readonly url: EgressUrl;
  readonly purpose: "key-set" | "introspection";
  /** Trusted certificates (PEM) instead of the public roots. */
  readonly roots: readonly string[] | undefined;
}

const MAX_HEAD_BYTES = 8192;
/** Key sets and metadata have a few kilobytes. */
const MAX_BODY_BYTES = 1_048_576;
const USER_AGENTS = { "key-set": "gateway-jwks", introspection: "gateway-introspection" } as const;

type Connection = Awaited<ReturnType<EgressDialer["dial"]>>;

/**
 * The body of a 200 response. Redirects are not followed. @throws EgressError otherwise, `timeout` when `signal` aborts
 */
export async function fetchPublished(
  dialer: EgressDialer,
  source: PublishedSource,
  signal: AbortSignal,
): Promise<Buffer> {
  const { url, roots, purpose } = source;
  const target = { host: url.host, port: url.port, isSecure: url.isSecure, ...(roots === undefined ? {} : { roots }) };
  const socket = await dialer.dial(target, purpose, signal);
  const onAbort = (): void => void socket.destroy(timedOut());
  signal.addEventListener("abort", onAbort, { once: true });
  // Errors after the response are irrelevant, but would be uncaught.
  socket.on("error", () => undefined);
  try {
    if (signal.aborted) throw timedOut();
    return await responseOf(socket, source);
  } catch (error) {
    throw asEgressError(error, "connection_lost");
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.destroy();
  }
}

async function responseOf(socket: Connection, { url, purpose }: PublishedSource): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  const reader = new ResponseReader(
    {
      onInformational: () => undefined,
      onHead: ({ status }) => {
        if (status !== 200) reject(new EgressError("bad_answer", `The status of the response is ${status}, not 200`));
      },
      onData: (piece) => {
        sizeBytes += piece.length;
        if (sizeBytes > MAX_BODY_BYTES) reject(new EgressError("answer_too_large", "The response's body is too large"));
        else pieces.push(Buffer.from(piece));
      },
      onEnd: () => resolve(Buffer.concat(pieces)),
      onError: (error) => reject(new EgressError("bad_answer", error.message)),
    },
    { lenient: true, limits: { headBytes: MAX_HEAD_BYTES } },
  );
  reader.expect("GET");
  socket.on("error", reject);
  socket.on("data", (bytes: Buffer) => reader.read(bytes));
  socket.on("end", () => {
    reader.end();
    reject(new EgressError("connection_lost", "The connection ended before the response did"));
  });
  socket.on("close", () => reject(new EgressError("connection_lost", "The connection was closed")));
  const fields = [
    "Host",
    url.authority,
    "Accept",
    "application/json",
    "User-Agent",
    USER_AGENTS[purpose],
    "Connection",
    "close",
  ];
  socket.write(requestHeadText("GET", url.target, fields), "latin1");
  return await promise;
}

/** Parses a JSON object; undefined for anything else. */
export function jsonObject(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
