import type { Failure } from "#exchange/failure.ts";
import type { Destination, Dialled, DialResult } from "./destination.ts";

/** So many connections to one place by way of the proxy may be a circle; nobody is refused for it. */
const SUSPICIOUS_CONNECTIONS = 64;
/** Between two questions, also where crowds are usual. */
const REST_MS = 10_000;
/** How long a circle is believed in before a request may find out whether it is still there. */
const BELIEVED_MS = 10_000;
/** For an answer to the question. */
const RESPONSE_TIMEOUT_MS = 5000;

/** What went to the upstream proxy came back to this process. */
export const LOOP: Failure = {
  stage: "policy",
  side: "internal",
  code: "LOOP",
  message:
    "What goes to the upstream proxy by SOCKS5 comes back here by way of other proxies; it would go round for ever",
};

/** A connection as it is counted. */
export interface CountedDial {
  /** Instead of the result that was given. */
  readonly result: DialResult;
  /** To be called when nobody waits for the result any more. */
  readonly left: () => void;
}

/** Connects to a destination by way of the proxy; gives the function that gives up. */
export type AskProxy = (destination: Destination, result: DialResult) => () => void;

/**
 * Notices that a SOCKS5 proxy leads back to this process. SOCKS5 has no place for what `Via` is to HTTP, so it is asked:
 * once many connections to one place are under way, the proxy gets one more, to a name that no one else can mean. Whoever
 * is in a circle is asked for that name; any other proxy finds that it does not exist.
 */
export class LoopDetector {
  readonly #name: string;
  readonly #ask: AskProxy;
  readonly #nowMs: () => number;
  /** By place: connections that are being made, or are there. */
  readonly #connections = new Map<string, number>();
  #quietUntilMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #believedUntilMs = Number.NEGATIVE_INFINITY;

  /**
   * @param pseudonym  the name of this process for proxies on the way
   * @param nowMs  a clock that only goes forward
   */
  constructor(viaPseudonym: string, ask: AskProxy, nowMs: () => number = () => performance.now()) {
    // Never a host: RFC 6761, section 6.4.
    this.#name = `${viaPseudonym}.invalid`;
    this.#ask = ask;
    this.#nowMs = nowMs;
  }

  /**
   * Whether a connection to this host would be the own question coming back. From then on there is a circle, unless nothing
   * was asked: whoever learnt the name could end everything by it.
   */
  hasComeRound(host: string): boolean {
    if (host !== this.#name) return false;
    if (this.#isAsking) this.#believedUntilMs = this.#nowMs() + BELIEVED_MS;
    return true;
  }

  /** There was a circle a moment ago. */
  get isCircular(): boolean {
    return this.#nowMs() < this.#believedUntilMs;
  }

  /** For a connection that is about to be made by way of the proxy. */
  counted(destination: Destination, result: DialResult): CountedDial {
    const left = this.#enter(destination);
    return {
      left,
      result: {
        connected: (dialled) => {
          dialled.socket.once("close", left);
          result.connected(dialled);
        },
        failed: (failure) => {
          left();
          const isResponse = failure.stage === "proxy-handshake";
          result.failed(isResponse && this.isCircular ? LOOP : failure);
        },
      },
    };
  }

  #enter({ host, port }: Destination): () => void {
    const place = `${host}:${port}`;
    const count = (this.#connections.get(place) ?? 0) + 1;
    this.#connections.set(place, count);
    if (count >= SUSPICIOUS_CONNECTIONS) this.#question(port);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      const others = (this.#connections.get(place) ?? 1) - 1;
      if (others === 0) this.#connections.delete(place);
      else this.#connections.set(place, others);
    };
  }

  #question(port: number): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#quietUntilMs) return;
    this.#quietUntilMs = nowMs + REST_MS;
    this.#isAsking = true;
    let end = (): void => undefined;
    const done = (): void => {
      clearTimeout(late);
      this.#isAsking = false;
    };
    const late = setTimeout(() => {
      end();
      done();
    }, RESPONSE_TIMEOUT_MS);
    late.unref();
    const host = this.#name;
    const connected = ({ socket }: Dialled): void => {
      end = () => void socket.destroy();
      socket.on("error", done);
      socket.on("close", done);
      socket.resume();
      // Some proxies say that a way is open before they go it: they wait for what is to be sent there.
      socket.write(`HEAD / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    };
    end = this.#ask({ host, port, secure: false, serverName: undefined, tunnel: true }, { connected, failed: done });
  }
}
