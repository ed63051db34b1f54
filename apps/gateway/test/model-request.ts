import assert from "node:assert/strict";
import { type Framing, hasBody, lengthFraming, type RawFields, type ResponseHead } from "@headworks/http1";
import { BufferBudget, type SharedBytes } from "@headworks/sockets";
import { ResponseSender } from "#request/response-sender.ts";
import { type ClientHandler, type ClientStream, type Generation, RequestContext } from "#request/context.ts";
import { ProxiedRequest } from "#request/proxied-request.ts";
import { TrustedProxies } from "#request/forwarding-rules.ts";
import type {
  ResponseHandler,
  EndpointPool,
  ExchangeWaiter,
  UpstreamExchange,
  UpstreamFailure,
} from "#upstream/upstream-exchange.ts";
import type { UpstreamGroup } from "#upstream/upstream-registry.ts";

/** Where waiting attempts and their ways are found by a test. */
export interface Surroundings {
  readonly group: UpstreamGroup;
  readonly waiting: Waiting[];
  readonly exchanges: FakeExchange[];
}

/** An attempt that waits for a way to its endpoint. */
export interface Waiting {
  connect(): void;
  refuse(failure: UpstreamFailure): void;
}

const GENERATION = { trustedProxies: new TrustedProxies([]) } as unknown as Generation;
const BODY_BYTES = 40;
const PIECE_BYTES = 10;

/** A request of a client that a test plays, sent through the real engine. */
export class NewRequest {
  doneCount = 0;
  #openAttempts = 0;
  readonly #client: FakeClient;
  readonly #delivery: ResponseSender;
  readonly #around: Surroundings;
  readonly #framing: Framing;
  readonly #maxAttempts: number;
  readonly #maxOpen: number;
  #attempts = 0;
  #sentBytes = 0;
  #isComplete = false;

  constructor(around: Surroundings, method: string, framing: Framing) {
    this.#around = around;
    this.#framing = framing;
    this.#client = new FakeClient();
    const { retries } = around.group.document;
    const hedges = retries?.hedge === undefined ? 0 : (retries.hedge.hedge_max ?? 1);
    // One more for an idle connection that was closed just then.
    this.#maxAttempts = 2 + (retries?.attempts ?? 0) + hedges;
    this.#maxOpen = 1 + hedges;
    const request = new RequestContext({
      generation: GENERATION,
      listener: { name: "public", isSecure: false, port: 80 },
      peer: { address: "192.0.2.1", port: 1 },
      startedMs: 0,
      version: "1.1",
      method,
      target: "/",
      authority: "gateway.test",
      fields: [],
      framing,
    });
    this.#delivery = new ResponseSender(request, this.#client, () => {
      this.doneCount += 1;
    });
  }

  get isDone(): boolean {
    return this.doneCount > 0;
  }

  start(): void {
    const action = {
      kind: "proxy",
      choose: () => ({ group: this.#around.group, host: "endpoint" as const, setCookie: undefined }),
      rewrite: () => "/",
      changeFields: undefined,
    } as const;
    const pools = { poolOf: (): EndpointPool => this.#pool, buffers: new BufferBudget(1_000_000) };
    new ProxiedRequest(this.#delivery, action, pools).start();
  }

  /** The client sends a piece of its body, or all that is left. */
  piece(): void {
    if (!this.#canSend || this.#sentBytes + PIECE_BYTES >= BODY_BYTES) return;
    this.#sentBytes += PIECE_BYTES;
    this.#client.handler?.onBodyData(Buffer.alloc(PIECE_BYTES));
    this.#client.handler?.onBodyBatch();
  }

  complete(): void {
    if (!this.#canSend) return;
    this.#isComplete = true;
    this.#client.handler?.onBodyData(Buffer.alloc(BODY_BYTES - this.#sentBytes));
    this.#client.handler?.onBodyEnd();
    this.#client.handler?.onBodyBatch();
  }

  goAway(): void {
    this.#client.goAway();
  }

  /** What must hold at any time. */
  check(): void {
    assert.ok(this.doneCount <= 1, "a request ends once");
    assert.ok(this.#client.heads <= 1, "a client gets one answer");
    assert.ok(this.#client.ends <= this.#client.heads);
    assert.ok(this.#attempts <= this.#maxAttempts, `${this.#attempts} attempts`);
    assert.ok(this.#openAttempts <= this.#maxOpen, `${this.#openAttempts} attempts at a time`);
    if (this.isDone) assert.equal(this.#openAttempts, 0, "no attempt goes on after its request");
  }

  get #canSend(): boolean {
    return hasBody(this.#framing) && this.#client.isRead && !this.#isComplete && !this.isDone;
  }

  readonly #pool: EndpointPool = {
    openConnections: 0,
    retire: () => undefined,
    acquire: (waiter: ExchangeWaiter) => {
      this.#attempts += 1;
      this.#openAttempts += 1;
      const { waiting, exchanges } = this.#around;
      const closed = (): void => {
        this.#openAttempts -= 1;
      };
      const entry: Waiting = {
        connect: () => {
          const exchange = new FakeExchange(closed, BODY_BYTES);
          exchanges.push(exchange);
          waiter.onExchange(exchange);
        },
        refuse: (failure) => {
          closed();
          waiter.onUnavailable(failure, "");
        },
      };
      waiting.push(entry);
      return () => {
        const index = waiting.indexOf(entry);
        if (index === -1) return true;
        waiting.splice(index, 1);
        closed();
        return true;
      };
    },
  };
}

/** A way to an endpoint whose answers a test plays. */
export class FakeExchange implements UpstreamExchange {
  readonly #closed: () => void;
  readonly #bodyBytes: number;
  #handler: ResponseHandler | undefined;
  #framing: Framing | undefined;
  #sentBytes = 0;
  #isSent = false;
  #hasHead = false;

  constructor(closed: () => void, bodyBytes: number) {
    this.#closed = closed;
    this.#bodyBytes = bodyBytes;
  }

  send(request: { readonly framing: Framing; readonly handler: ResponseHandler }): void {
    assert.equal(this.#framing, undefined, "one request for each exchange");
    this.#framing = request.framing;
    this.#handler = request.handler;
    this.#isSent = !hasBody(request.framing);
  }

  sendData(piece: SharedBytes): void {
    assert.ok(!this.#isSent);
    this.#sentBytes += piece.length;
  }

  sendEnd(): void {
    assert.ok(!this.#isSent);
    this.#isSent = true;
    assert.equal(this.#sentBytes, this.#bodyBytes, "a body that ends is whole");
  }

  flush(): boolean {
    return true;
  }

  hold(): void {}
  release(): void {}

  abandon(): void {
    if (this.#handler === undefined) return;
    this.#handler = undefined;
    if (!this.#hasHead) this.#closed();
  }

  takeOver(): never {
    throw new Error("Nothing is switched here");
  }

  head(status: number): void {
    if (this.#handler === undefined || this.#hasHead) return;
    this.#hasHead = true;
    this.#closed();
    const head: ResponseHead = {
      version: "1.1",
      status,
      reason: "",
      fields: [],
      fieldLines: undefined,
      framing: lengthFraming(5),
      keepAlive: true,
      upgrade: undefined,
      oddities: [],
      headSizeBytes: 0,
    };
    this.#handler.onResponseHead(head);
    this.#handler?.onResponseBatch();
  }

  end(): void {
    if (!this.#hasHead) return;
    const handler = this.#handler;
    handler?.onResponseData(Buffer.alloc(5));
    this.#handler = undefined;
    handler?.onResponseEnd();
  }

  lose(stale: boolean): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.#handler = undefined;
    if (!this.#hasHead) this.#closed();
    handler.onUpstreamLost("reset", stale && !this.#hasHead, "");
  }
}

class FakeClient implements ClientStream {
  readonly version = "1.1";
  readonly canUpgrade = false;
  readonly bodyBytesHere = 0;
  handler: ClientHandler | undefined;
  heads = 0;
  ends = 0;
  isRead = false;

  readBody(): void {
    this.isRead = true;
  }

  pauseBody(): void {
    this.isRead = false;
  }

  resumeBody(): void {
    this.isRead = true;
  }

  sendInformational(): void {
    assert.equal(this.heads, 0);
  }

  sendHead(_status: number, _reason: string, _fields: RawFields): void {
    this.heads += 1;
  }

  sendData(): void {
    assert.equal(this.heads, 1);
    assert.equal(this.ends, 0, "nothing follows the end");
  }

  sendEnd(): void {
    this.#over();
  }

  abort(): void {
    this.#over();
  }

  goAway(): void {
    const { handler } = this;
    this.handler = undefined;
    handler?.onClientGone();
  }

  flush(): boolean {
    return true;
  }

  takeOver(): undefined {
    return undefined;
  }

  #over(): void {
    this.ends += 1;
    this.handler = undefined;
  }
}
