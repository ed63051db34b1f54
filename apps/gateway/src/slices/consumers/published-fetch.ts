import { requestHeadText, ResponseReader } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { asEgressError, EgressError, timedOut } from "#egress/egress-failure.ts";
import type { EgressUrl } from "#egress/egress-url.ts";

/** A URL at which a token issuer publishes keys or metadata. */
export interface PublishedSource {
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
        if (status !== 200) reject(new EgressError("bad_answer", `The status of the answer is ${status}, not 200`));
      },
      onData: (piece) => {
        sizeBytes += piece.length;
        if (sizeBytes > MAX_BODY_BYTES) reject(new EgressError("answer_too_large", "The answer's body is too large"));
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
    reject(new EgressError("connection_lost", "The connection ended before the answer did"));
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
