import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Listener } from "@headworks/gateway-contract";
import { canonicalHost, isUnspecified, parseAddress } from "@headworks/host-patterns";
import type { RateRule } from "@headworks/sockets";
import type { ConnectionServices, ListenerTimeouts } from "./connection-services.ts";
import { DataListener, type ListenerState, type PreparedListener } from "./data-listener.ts";
import { environmentNumber, http2Limits } from "./environment-numbers.ts";
import type { SessionTickets, WatchFile } from "./tls-acceptor.ts";

interface ListenerSetParts {
  readonly services: Omit<ConnectionServices, "timeouts" | "http2" | "slowClients">;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly watch: WatchFile;
  readonly tickets: SessionTickets;
  /** Other processes of this gateway listen on the same ports. */
  readonly sharesPorts: boolean;
}

/** Prepared listeners of the next generation. */
interface Next {
  readonly documents: readonly Listener[];
  readonly ready: ReadonlyMap<Listener, PreparedListener>;
}

/**
 * The listeners of the running generation. Another generation is prepared and then taken or given up, one at a time:
 * everything that can fail does so during preparation, while the running generation continues.
 */
export class ListenerSet {
  readonly #parts: ListenerSetParts;
  readonly #services: Omit<ConnectionServices, "timeouts" | "slowClients">;
  #open: ReadonlyMap<string, DataListener> = new Map();
  readonly #closing = new Set<Promise<void>>();
  #turn: Promise<unknown> = Promise.resolve();
  #next: Next | undefined;
  #isStopped = false;

  constructor(parts: ListenerSetParts) {
    this.#parts = parts;
    this.#services = { ...parts.services, http2: http2Limits(parts.environment) };
    const { limits, http2 } = this.#services;
    parts.log.info({ code: "protocol_hardening", http1: limits, http2 }, "Limits of all clients");
  }

  /**
   * Prepares another generation: listens on new addresses, where connections are held, and reads certificates.
   * Returns the problems found; with any problem nothing stays prepared.
   */
  async prepare(documents: readonly Listener[]): Promise<readonly ListenerProblem[]> {
    return await this.#inTurn(async () => await this.#prepareNow(documents));
  }

  /** Switches to the prepared generation: equal listeners stay; removed ones drain for `graceMs`. */
  async take(graceMs: number): Promise<void> {
    await this.#inTurn(async () => {
      const next = this.#next;
      // `stop` gives up what is prepared.
      if (next === undefined || this.#isStopped) return;
      this.#next = undefined;
      await this.#become(next, graceMs);
    });
  }

  async discard(): Promise<void> {
    await this.#inTurn(async () => await this.#giveUpNow());
  }

  get addresses(): readonly { readonly name: string; readonly address: string; readonly port: number }[] {
    return [...this.#open.values()].map(({ document: { name, address }, port }) => ({ name, address, port }));
  }

  get states(): readonly ListenerState[] {
    return [...this.#open.values()].map(({ state }) => state);
  }

  /** Drains all for at most `graceMs`, then closes the remaining connections. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    await this.discard();
    const stopping = [...this.#open.values()].map(async (listener) => await listener.stop(graceMs));
    this.#open = new Map();
    await Promise.all([...stopping, ...this.#closing]);
  }

  async #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act);
    this.#turn = turn.catch(() => undefined);
    return await turn;
  }

  async #prepareNow(documents: readonly Listener[]): Promise<readonly ListenerProblem[]> {
    await this.#giveUpNow();
    if (this.#isStopped) return [];
    const kept = this.#keptFor(documents);
    const staying = new Set(kept.values());
    const leaving = [...this.#open.values()].filter((listener) => !staying.has(listener));
    const ready = new Map<Listener, PreparedListener>();
    this.#next = { documents, ready };
    const problems: ListenerProblem[] = [];
    for (const [at, document] of documents.entries()) {
      try {
        ready.set(
          document,
          (await kept.get(document)?.prepare(document)) ?? (await this.#prepareNew(document, leaving)),
        );
      } catch (error) {
        problems.push({ at, message: whyNotListening(document, error) });
      }
    }
    if (problems.length > 0) await this.#giveUpNow();
    return problems;
  }

  /** Leaving listeners that block a document's address, as when one address of a port becomes all addresses. */
  #blocking({ address, port }: Listener, error: unknown, leaving: readonly DataListener[]): readonly DataListener[] {
    // A shared port is free once the last process has left it, which no process can know.
    if (this.#parts.sharesPorts || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") return [];
    return leaving.filter(
      (listener) => listener.isListening && listener.port === port && mayOverlap(listener.document.address, address),
    );
  }

  async #become({ documents, ready }: Next, graceMs: number): Promise<void> {
    const kept = this.#keptFor(documents);
    const before = [...this.#open.values()];
    const open = new Map<string, DataListener>();
    const taking: Promise<void>[] = [];
    for (const document of documents) {
      const prepared = ready.get(document);
      if (prepared !== undefined) taking.push(prepared.take());
      const listener = prepared?.listener ?? kept.get(document);
      if (listener !== undefined) open.set(addressKey(document), listener);
    }
    this.#open = open;
    const staying = new Set(open.values());
    for (const listener of before) {
      if (staying.has(listener)) continue;
      // The address is free as soon as the listener is closed; open connections do not hold it.
      const closing = listener.stop(graceMs).finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
    await Promise.allSettled(taking);
  }

  async #giveUpNow(): Promise<void> {
    const prepared = [...(this.#next?.ready.values() ?? [])];
    this.#next = undefined;
    // In reverse order: a listener that made room returns after all that took its room are gone.
    for (const each of prepared.toReversed()) await each.discard();
  }

  /** The open listener for each document; one with a port that the system chose stays. */
  #keptFor(documents: readonly Listener[]): ReadonlyMap<Listener, DataListener> {
    const wanted = new Set(documents.map(addressKey));
    const given = new Map<string, DataListener>();
    for (const [key, listener] of this.#open) {
      if (!wanted.has(key)) given.set(addressKey({ ...listener.document, port: listener.port }), listener);
    }
    const kept = new Map<Listener, DataListener>();
    for (const document of documents) {
      const key = addressKey(document);
      const listener = this.#open.get(key) ?? given.get(key);
      if (listener !== undefined) kept.set(document, listener);
    }
    return kept;
  }

  async #prepareNew(document: Listener, leaving: readonly DataListener[]): Promise<PreparedListener> {
    try {
      return startsWith(await this.#listen(document));
    } catch (error) {
      const blocking = this.#blocking(document, error, leaving);
      if (blocking.length === 0) throw error;
      // Connections in the gap are refused; later ones are held like those of any new listener.
      for (const listener of blocking) listener.makeRoom();
      const comeBack = async (): Promise<void> => {
        for (const listener of blocking) await this.#comeBack(listener);
      };
      try {
        const listener = await this.#listen(document);
        const prepared = startsWith(listener);
        return {
          ...prepared,
          discard: async () => {
            await prepared.discard();
            await comeBack();
          },
        };
      } catch (again) {
        await comeBack();
        throw again;
      }
    }
  }

  async #comeBack(listener: DataListener): Promise<void> {
    try {
      await listener.comeBack();
    } catch (error) {
      const { document } = listener;
      const facts = { err: error, listener: document.name, code: "listener_failed" };
      this.#parts.log.error(facts, whyNotListening(document, error));
    }
  }

  async #listen(document: Listener): Promise<DataListener> {
    const { log, watch, tickets, sharesPorts } = this.#parts;
    const timeoutsOf = (one: Listener): ListenerTimeouts => this.#timeouts(one);
    const parts = { services: this.#services, timeoutsOf, log, watch, tickets, sharesPorts };
    return await DataListener.open(document, parts);
  }

  #timeouts(document: Listener): ListenerTimeouts {
    const { environment } = this.#parts;
    return {
      headMs: document.header_timeout_ms ?? environmentNumber(environment, "GATEWAY_HTTP1_HEADER_TIMEOUT_MS"),
      idleMs: document.idle_timeout_ms ?? 60_000,
      requestMs: document.request_timeout_ms ?? 0,
      bodyMs: environmentNumber(environment, "GATEWAY_REQUEST_BODY_TIMEOUT_MS"),
      requestRate: rateOf(document.min_request_rate, 20_000),
      responseRate: rateOf(document.min_response_rate, 60_000),
    };
  }
}

/** Slower than any real client; protects against slow attacks. */
const DEFAULT_BYTES_PER_S = 240;

function rateOf(rate: Listener["min_request_rate"], graceMs: number): RateRule {
  return { bytesPerS: rate?.bytes_per_s ?? DEFAULT_BYTES_PER_S, graceMs: rate?.grace_ms ?? graceMs };
}

function startsWith(listener: DataListener): PreparedListener {
  return {
    listener,
    take: async () => {
      listener.begin();
      await Promise.resolve();
    },
    discard: async () => await listener.stop(0),
  };
}

/** Whether two addresses may be equal, or one may include the other: names may stand for any. */
function mayOverlap(a: string, b: string): boolean {
  const areBothPlain = [a, b].every((each) => parseAddress(each) !== undefined && !isUnspecified(each));
  return !areBothPlain || canonicalHost(a) === canonicalHost(b);
}

/** Key of the listen address; with port 0 the name tells listeners apart. */
function addressKey({ name, address, port }: Listener): string {
  return port === 0 ? `${address} ${port} ${name}` : `${address} ${port}`;
}

/** Time for workers to close what they prepared. */
const GIVEN_UP_MS = 100;

/** Why a listener cannot follow its document. */
export interface ListenerProblem {
  /** Index among the listeners of the document. */
  readonly at: number;
  readonly message: string;
}

const CAUSES: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this process may not use that port",
  ENOTFOUND: "no address is known by that name",
};

/** A sentence that says why a listener cannot be opened or cannot follow its document. */
function whyNotListening({ name, address, port }: Listener, error: unknown): string {
  const why = whyNoAddress(port, error);
  if (why === undefined) return `The listener "${name}" cannot use its certificates: ${(error as Error).message}`;
  return `The listener "${name}" cannot listen on ${address} port ${port}: ${why}`;
}

/** Why an address cannot be listened on, as the end of a sentence; undefined for other errors. */
export function whyNoAddress(port: number, error: unknown): string | undefined {
  const { code = "", syscall, message } = error as NodeJS.ErrnoException;
  if (syscall !== "listen" && syscall !== "bind" && syscall !== "getaddrinfo") return undefined;
  if (code === "EADDRINUSE") return `the port is in use there (${code}); ${whoHolds(port)}`;
  const cause = CAUSES[code];
  return cause === undefined ? message : `${cause} (${code})`;
}

/** Finding the owner of a port takes more rights than a gateway has. */
function whoHolds(port: number): string {
  const tool = process.platform === "linux" ? `ss -ltnp 'sport = :${port}'` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`;
  return `another gateway that still runs, or another program, has it: ${tool} names it`;
}

/**
 * Tries every address that the workers do not listen on yet, in this process, which listens on nothing itself. A
 * worker that fails at an address counts that attempt for good (`node:cluster`), and from then on shares the address
 * with no worker that made fewer attempts; so failures are detected here first.
 */
export async function tryAddresses(
  listeners: readonly Listener[],
  open: readonly { readonly address: string; readonly port: number }[],
): Promise<readonly ListenerProblem[]> {
  const problems: ListenerProblem[] = [];
  for (const [at, listener] of listeners.entries()) {
    const { address, port } = listener;
    if (open.some((known) => known.address === address && (known.port === port || port === 0))) continue;
    try {
      await tryTwice(address, port);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      const neighbour = isTaken && open.some((known) => known.port === port);
      const hint = neighbour ? "; with several workers, a listener on that port has to be removed first" : "";
      problems.push({ at, message: `${whyNotListening(listener, error)}${hint}` });
    }
  }
  return problems;
}

/** Retried once: workers may still be closing an abandoned candidate. */
async function tryTwice(address: string, port: number): Promise<void> {
  try {
    await listenShortly(address, port);
  } catch {
    await sleep(GIVEN_UP_MS);
    await listenShortly(address, port);
  }
}

async function listenShortly(host: string, port: number): Promise<void> {
  const server = createServer((socket) => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => void server.close(() => resolve()));
  });
}
