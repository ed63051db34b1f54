import type { Socket } from "node:net";
import { MAX_MS, type Upstream } from "@headworks/gateway-contract";
import { requestHeadText, RESPONSE_LIMITS, ResponseReader } from "@headworks/http1";
import { Http2Session, sectionField, sectionLimits } from "@headworks/http2";
import {
  type AttemptHandler,
  connectEndpoint,
  connectHttp2Endpoint,
  type EndpointConnectionOptions,
  probeHost,
} from "./endpoint-connection.ts";
import type { Endpoint } from "./endpoint.ts";

const AGENT = "sluice-health";
const RESPONSE_SECTION = sectionLimits(RESPONSE_LIMITS);

export interface ProbedGroup {
  readonly document: Upstream;
  readonly endpoints: readonly Endpoint[];
}

/** Provides connection options; may throw if files cannot be used. */
export interface ConnectionOptionsSource {
  optionsOf(document: Upstream, endpoint: Endpoint): EndpointConnectionOptions;
}

/** Concurrent probes of all upstreams; others are queued. */
const MAX_PROBES = 512;
/** First probes of an upstream are spread: this many milliseconds per endpoint, at most one interval. */
const SPREAD_MS = 5;

/** Probes endpoints of upstreams with `active_health` periodically and reports the results to them. */
export class ActiveHealth {
  readonly #connections: ConnectionOptionsSource;
  readonly #random: () => number;
  readonly #loops = new Map<Endpoint, ProbeLoop>();
  readonly #turns: ProbeTurns;

  constructor(connections: ConnectionOptionsSource, { random = Math.random, maxProbes = MAX_PROBES } = {}) {
    this.#connections = connections;
    this.#random = random;
    this.#turns = new ProbeTurns(maxProbes);
  }

  /**
   * Probes the endpoints of these upstreams only. Loops continue if their document is unchanged and restart
   * otherwise; the state of the endpoints is kept in either case.
   */
  follow(groups: readonly ProbedGroup[]): void {
    const wanted = new Map<Endpoint, ProbedGroup>();
    for (const group of groups) {
      if (group.document.active_health === undefined) continue;
      for (const endpoint of group.endpoints) wanted.set(endpoint, group);
    }
    for (const [endpoint, loop] of this.#loops) {
      if (wanted.get(endpoint)?.document === loop.document) continue;
      loop.stop();
      this.#loops.delete(endpoint);
    }
    for (const [endpoint, { document, endpoints }] of wanted) {
      if (this.#loops.has(endpoint)) continue;
      const rules = probeRules(document, probeHost(document, endpoint));
      const loop = new ProbeLoop({
        document,
        endpoint,
        rules,
        connections: this.#connections,
        turns: this.#turns,
        random: this.#random,
      });
      this.#loops.set(endpoint, loop);
      loop.start(this.#random() * Math.min(rules.intervalMs, endpoints.length * SPREAD_MS));
    }
  }

  stop(): void {
    this.follow([]);
  }
}

interface ProbeRules {
  readonly question: ProbeRequest;
  readonly intervalMs: number;
  readonly jitterMs: number;
  readonly success: number;
  readonly failure: number;
}

function probeRules({ active_health: block = {}, protocol }: Upstream, authority: string): ProbeRules {
  const expected = block.expected_statuses ?? ["2xx"];
  return {
    question: {
      kind: block.kind ?? "http",
      isHttp2: protocol === "http2" || protocol === "h2c",
      path: block.path ?? "/healthz",
      authority,
      timeoutMs: block.timeout_ms ?? 2000,
      isExpected: (status) => expected.includes(String(status)) || expected.includes(`${Math.floor(status / 100)}xx`),
    },
    intervalMs: block.interval_ms ?? 5000,
    jitterMs: block.jitter_ms ?? 500,
    success: block.success_threshold ?? 2,
    failure: block.failure_threshold ?? 3,
  };
}

interface LoopParts {
  readonly document: Upstream;
  readonly endpoint: Endpoint;
  readonly rules: ProbeRules;
  readonly connections: ConnectionOptionsSource;
  readonly turns: ProbeTurns;
  readonly random: () => number;
}

/** The probes of one endpoint, one at a time, with a pause between them. */
class ProbeLoop {
  readonly document: Upstream;
  readonly #parts: LoopParts;
  #timer: NodeJS.Timeout | undefined;
  #cancel: (() => void) | undefined;

  constructor(parts: LoopParts) {
    this.document = parts.document;
    this.#parts = parts;
  }

  start(delayMs: number): void {
    this.#timer = setTimeout(() => {
      const leave = this.#parts.turns.take((giveBack) => this.#probe(giveBack));
      if (leave !== undefined) this.#cancel = leave;
    }, delayMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#cancel?.();
  }

  #probe(giveBack: () => void): void {
    const { document, endpoint, rules, connections } = this.#parts;
    const ended = (ok: boolean): void => {
      this.#cancel = undefined;
      giveBack();
      endpoint.probed(ok, rules);
      this.start(Math.min(MAX_MS, rules.intervalMs + this.#parts.random() * rules.jitterMs));
    };
    let options: EndpointConnectionOptions;
    try {
      options = connections.optionsOf(document, endpoint);
    } catch {
      // Without its files no connection can be made: a local error that says nothing about the endpoint.
      giveBack();
      return this.start(rules.intervalMs);
    }
    const cancel = probeEndpoint(options, rules.question, ended);
    const cancelProbe = (): void => {
      cancel();
      giveBack();
    };
    this.#cancel = cancelProbe;
  }
}

/** Limits concurrent probes; others are queued in order of arrival. */
class ProbeTurns {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /** Runs now or later; returns a function that leaves the queue, and does nothing once it runs. */
  take(run: (giveBack: () => void) => void): (() => void) | undefined {
    const begin = (): void => {
      let isBack = false;
      run(() => {
        if (isBack) return;
        isBack = true;
        this.#next();
      });
    };
    if (this.#free === 0) {
      this.#waiting.add(begin);
      return () => this.#waiting.delete(begin);
    }
    this.#free -= 1;
    begin();
    return undefined;
  }

  #next(): void {
    const [begin] = this.#waiting;
    if (begin === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(begin);
    begin();
  }
}

/** The parameters of a probe. */
interface ProbeRequest {
  readonly kind: "http" | "tcp";
  /** Whether requests use HTTP/2, which the probe then uses, too. */
  readonly isHttp2: boolean;
  readonly path: string;
  /** Value of Host. */
  readonly authority: string;
  /** For the whole probe. */
  readonly timeoutMs: number;
  readonly isExpected: (status: number) => boolean;
}

/** Reports whether the endpoint is healthy; only the first call counts. */
type Finish = (ok: boolean) => void;

/**
 * Probes an endpoint on a connection of its own and in the protocol of its upstream: `tcp` only connects (over TLS if
 * the upstream uses it), `http` sends a GET and checks the response status without reading the body. Returns a
 * function that cancels the probe.
 */
function probeEndpoint(options: EndpointConnectionOptions, question: ProbeRequest, ended: Finish): () => void {
  const { timeoutMs } = question;
  let isFinished = false;
  const stop = (): void => {
    isFinished = true;
    clearTimeout(timer);
    drop();
  };
  const finish = (ok: boolean): void => {
    if (isFinished) return;
    stop();
    ended(ok);
  };
  const timer = setTimeout(() => finish(false), timeoutMs);
  const connecting = question.isHttp2 ? connectToAskHttp2 : connectToAskHttp1;
  const drop = connecting({ ...options, connectMs: timeoutMs }, question, finish);
  return stop;
}

function connectToAskHttp1(options: EndpointConnectionOptions, question: ProbeRequest, finish: Finish): () => void {
  const reader = readerOf(question, finish);
  return connectEndpoint(options, {
    ...attemptHandler(question, finish, (socket) => {
      const { path, authority } = question;
      const fields = ["Host", authority, "User-Agent", AGENT, "Accept", "*/*", "Connection", "close"];
      socket.write(requestHeadText("GET", path, fields));
      socket.resume();
    }),
    received: (bytes) => void reader.read(bytes),
  });
}

function connectToAskHttp2(options: EndpointConnectionOptions, question: ProbeRequest, finish: Finish): () => void {
  const scheme = options.tls === undefined ? "http" : "https";
  return connectHttp2Endpoint(
    options,
    attemptHandler(question, finish, (socket) => askHttp2(socket, scheme, question, finish)),
  );
}

function attemptHandler({ kind }: ProbeRequest, finish: Finish, send: (socket: Socket) => void): AttemptHandler {
  return {
    connected: (socket) => {
      socket.on("error", () => finish(false));
      socket.on("close", () => finish(false));
      if (kind === "tcp") finish(true);
      else send(socket);
    },
    failed: () => finish(false),
  };
}

function askHttp2(socket: Socket, scheme: string, { path, authority, isExpected }: ProbeRequest, finish: Finish): void {
  const failed = (): void => finish(false);
  const session = new Http2Session(socket, { role: "client", section: RESPONSE_SECTION }, { onClose: failed });
  const pseudo = [":method", "GET", ":scheme", scheme, ":authority", authority, ":path", path];
  const stream = session.request([...pseudo, "user-agent", AGENT, "accept", "*/*"], true);
  stream.handler = {
    onSection: (section) => {
      const status = Number(sectionField(section, ":status"));
      if (!(status < 200)) finish(isExpected(status));
    },
    onData: nothing,
    onTrailers: nothing,
    onEnd: nothing,
    onDrain: nothing,
    onClose: failed,
  };
}

function readerOf({ isExpected }: ProbeRequest, finish: Finish): ResponseReader {
  const reader = new ResponseReader(
    {
      onInformational: nothing,
      onHead: ({ status }) => finish(isExpected(status)),
      onData: nothing,
      onEnd: nothing,
      onError: () => finish(false),
    },
    { lenient: false },
  );
  reader.expect("GET");
  return reader;
}

function nothing(): void {
  // A probe needs only the status.
}
