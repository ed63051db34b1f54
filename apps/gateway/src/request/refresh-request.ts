import { NO_BODY, type RawFields } from "@headworks/http1";
import type { ClientHandler, ClientStream } from "./client-stream.ts";
import { RequestContext } from "./context.ts";
import { withConditions } from "./forwarded-fields.ts";
import type { CompiledRoute } from "./generation.ts";

/** Nobody waits for it, so nobody would notice that an upstream never ends: it is given up after so long, or so much. */
const MAX_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The request of a client once more, without the client and with other conditions. It runs through nothing but the
 * action: what guards and decorates answers was done for the one that the client has.
 */
export function refreshRequest(
  stale: RequestContext,
  route: CompiledRoute,
  conditions: Readonly<RawFields>,
): { readonly request: RequestContext; readonly stream: NoClient } {
  const { generation, listener, peer, method, target, authority } = stale;
  const request = new RequestContext({
    generation,
    listener,
    peer,
    startedMs: performance.now(),
    version: "1.1",
    method,
    target,
    authority,
    fields: withConditions(stale.fields, conditions),
    framing: NO_BODY,
  });
  request.requestId = stale.requestId;
  request.correlationId = stale.correlationId;
  request.route = { ...route, decorators: [], bodyFilters: [] };
  request.pathParameters = stale.pathParameters;
  request.consumer = stale.consumer;
  request.credentialFields = stale.credentialFields;
  request.refreshes = stale;
  return { request, stream: new NoClient() };
}

/** Takes an answer that nobody reads. */
class NoClient implements ClientStream {
  readonly version = "1.1";
  readonly canUpgrade = false;
  readonly bodyBytesHere = 0;
  handler: ClientHandler | undefined;
  #bytes = 0;
  readonly #timer = setTimeout(() => this.#giveUp(), MAX_MS).unref();

  /** The exchange is over. */
  stop(): void {
    clearTimeout(this.#timer);
    this.handler = undefined;
  }

  sendData(piece: Buffer): void {
    this.#bytes += piece.length;
    // Not from inside a call to this stream.
    if (this.#bytes > MAX_BYTES) setImmediate(() => this.#giveUp());
  }

  flush(): boolean {
    return true;
  }

  takeOver(): undefined {
    return undefined;
  }

  abort(): void {}
  readBody(): void {}
  pauseBody(): void {}
  resumeBody(): void {}
  sendInformational(): void {}
  sendHead(): void {}
  sendEnd(): void {}

  #giveUp(): void {
    const { handler } = this;
    this.handler = undefined;
    handler?.onClientGone();
  }
}
