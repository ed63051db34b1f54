import { setTimeout as delay } from "node:timers/promises";
import { type Command, Option } from "commander";
import {
  type ServerMessage,
  type TrafficEvent,
  trafficOperations,
  type TrafficSnapshot,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { apiAddress, type ApiAddress, callJson, noServiceText } from "./api-connection.ts";
import { CommandFailure, EXIT, type Invocation, type MessageSocket, type Outcome } from "./invocation.ts";
import { feedMessages, followUntilInterrupted, lineCount, NOT_THE_FEED } from "./following.ts";
import { type GlobalFlags, globalOptions } from "./global-options.ts";
import { QUERY_TIMES } from "./call.ts";
import { durationText, sizeText } from "./table.ts";
import { fitted, padded, type Terminal, visibleJson, visibleText } from "./terminal.ts";

interface TailOptions extends GlobalFlags {
  readonly query?: string;
  readonly lines: number;
}

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5000;

/** Adds `weir traffic tail`. */
export function addTailCommand(group: Command, invocation: Invocation, outcome: Outcome): void {
  const summary = "Follow the traffic: one line for each completed exchange";
  const command = group
    .command("tail")
    .summary(summary)
    .description(`${summary}. Reconnects if the service restarts; Ctrl+C stops.`)
    .option("-q, --query <query>", "Only exchanges that match this query")
    .addHelpText("after", QUERY_TIMES)
    .addOption(
      new Option("-n, --lines <count>", "Number of recent exchanges to show first").default(10).argParser(lineCount),
    );
  for (const option of globalOptions("Print one JSON object for each exchange")) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await tail(invocation, command.optsWithGlobals());
  });
}

/** Follows, reconnecting as needed, until interrupted or until the output is closed; resolves to the exit code. */
async function tail(invocation: Invocation, options: TailOptions): Promise<number> {
  const { stderr } = invocation;
  const address = apiAddress(options, invocation.environment);
  const url = `${address.baseUrl.replace(/^http/, "ws")}/ws?batch=1`;
  const printer = new EntryPrinter(invocation.stdout, options.json === true);
  let waitMs = FIRST_RETRY_MS;
  let hasConnected = false;
  return await followUntilInterrupted(invocation, async (signal) => {
    while (!signal.aborted) {
      const result = await follow({
        socket: await invocation.parts.openSocket(url),
        query: options.query,
        printer,
        catchUp: () => printStored(address, options, printer),
        stderr,
        signal,
      });
      if (result.kind === "refused") throw new CommandFailure(EXIT.failure, visibleText(result.message));
      if (signal.aborted) return;
      if (result.kind === "never-open" && !hasConnected) {
        throw new CommandFailure(EXIT.failure, noServiceText(address));
      }
      if (result.kind === "ended") {
        if (!hasConnected || waitMs === FIRST_RETRY_MS) {
          stderr.write(`weir: connection lost (${visibleText(result.reason)}); reconnecting\n`);
        }
        hasConnected = true;
        if (result.hasWorked) waitMs = FIRST_RETRY_MS;
      }
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
      waitMs = Math.min(waitMs * 2, LAST_RETRY_MS);
    }
  });
}

type FollowResult =
  /** `hasWorked`: entries were read on this connection, so that another one is worth a quick try. */
  | { readonly kind: "ended"; readonly reason: string; readonly hasWorked: boolean }
  | { readonly kind: "never-open" }
  | { readonly kind: "refused"; readonly message: string };

/** Inputs for following one connection. */
interface Followed {
  readonly socket: MessageSocket;
  readonly query: string | undefined;
  readonly printer: EntryPrinter;
  /** Prints the newest rows that match, older than what is live. */
  readonly catchUp: () => Promise<void>;
  readonly stderr: Terminal;
  readonly signal: AbortSignal;
}

/** Prints what one connection brings, until it is over. */
async function follow({ socket, query, printer, catchUp, stderr, signal }: Followed): Promise<FollowResult> {
  const { promise, resolve } = Promise.withResolvers<FollowResult>();
  let isOpen = false;
  let hasWorked = false;
  const end = (result: FollowResult): void => {
    resolve(result);
    socket.close();
  };
  const fill = (): void => {
    printer.hold();
    catchUp().then(
      () => {
        hasWorked = true;
        printer.release();
      },
      (error: unknown) => end(afterFailure(error)),
    );
  };
  const onAbort = (): void => socket.close();
  signal.addEventListener("abort", onAbort, { once: true });
  socket.onOpen(() => {
    isOpen = true;
    socket.send(JSON.stringify({ type: "Subscribe", data: { filter: query === undefined ? null : { q: query } } }));
    // A connection receives everything until it has subscribed; messages after the Pong are filtered.
    socket.send(JSON.stringify({ type: "Ping" }));
  });
  let isFiltered = false;
  const take = (message: ServerMessage): void => {
    if (message.type === "Error") {
      // Before the Pong it can only be about the filter, which stays wrong.
      if (!isFiltered) return end({ kind: "refused", message: message.data.message });
      return stderr.write(`weir: ${visibleText(message.data.message)}\n`);
    }
    if (message.type === "Pong") {
      isFiltered = true;
      return fill();
    }
    if (message.type === "Resync") {
      stderr.write(
        `weir: ${message.data.missed} events were missed because they arrived faster than they were read; the newest entries follow\n`,
      );
      return fill();
    }
    if (message.type === "Notice" && message.data.code === "entries-removed") {
      return stderr.write(`weir: ${visibleText(message.data.message)}\n`);
    }
    if (isFiltered && message.type === "Traffic") printer.take(message.data);
    return undefined;
  };
  socket.onMessage((text) => {
    try {
      for (const message of feedMessages(text)) take(message);
    } catch {
      // Something else than Weir speaks, and will again.
      end({ kind: "refused", message: NOT_THE_FEED });
    }
  });
  socket.onClose((reason) => resolve(isOpen ? { kind: "ended", reason, hasWorked } : { kind: "never-open" }));
  if (signal.aborted) socket.close();
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** A request that the service does not accept stays wrong; everything else may be better in a moment. */
function afterFailure(error: unknown): FollowResult {
  const message = error instanceof Error ? error.message : String(error);
  const isRefused = error instanceof ApiFailure && error.status >= 400 && error.status < 500;
  return isRefused ? { kind: "refused", message } : { kind: "ended", reason: message, hasWorked: false };
}

/** How many of the newest entries are requested to fill a gap. */
const GAP_ROWS = 1000;

/** Prints the stored rows at first, and after a gap those that it missed. */
async function printStored(address: ApiAddress, options: TailOptions, printer: EntryPrinter): Promise<void> {
  const limit = printer.oldestSeq === undefined ? Math.max(1, options.lines) : GAP_ROWS;
  const query = { ...(options.query === undefined ? {} : { q: options.query }), sort: "seq", order: "desc", limit };
  const { value } = await callJson(address, trafficOperations.listTrafficRows, { query });
  const { rows } = value as { rows: TrafficSnapshot[] };
  printer.start(options.lines === 0 ? (rows[0]?.seq ?? -1) + 1 : (rows.at(-1)?.seq ?? 0));
  for (const row of rows.toReversed()) printer.print(row);
}

/** How many entries are remembered so that none is printed twice after a gap. */
const REMEMBERED = 5000;

/** Prints each exchange once, when it is over. */
export class EntryPrinter {
  /** Entries before this one are not printed; set once by {@link start}. */
  oldestSeq: number | undefined;
  readonly #terminal: Terminal;
  readonly #isJson: boolean;
  readonly #printed = new Set<string>();
  /** Live rows wait here while stored ones, which are older, are fetched. */
  #held: TrafficSnapshot[] | undefined;

  constructor(terminal: Terminal, isJson: boolean) {
    this.#terminal = terminal;
    this.#isJson = isJson;
  }

  start(oldestSeq: number): void {
    this.oldestSeq ??= oldestSeq;
  }

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const row of held) this.print(row);
  }

  take(event: TrafficEvent): void {
    if (event.type !== "Added" && event.type !== "Updated") return;
    if (this.#held === undefined) this.print(event.data);
    else this.#held.push(event.data);
  }

  print(row: TrafficSnapshot): void {
    if (row.state === "pending" || this.#printed.has(row.id) || row.seq < (this.oldestSeq ?? 0)) return;
    this.#printed.add(row.id);
    if (this.#printed.size > REMEMBERED) this.#forgetOldest();
    this.#terminal.write(`${this.#isJson ? this.#jsonLine(row) : entryLine(row, this.#terminal)}\n`);
  }

  #forgetOldest(): void {
    const oldest = this.#printed.values().next();
    if (oldest.done !== true) this.#printed.delete(oldest.value);
  }

  #jsonLine(row: TrafficSnapshot): string {
    const text = JSON.stringify(row);
    return this.#terminal.isTty ? visibleJson(text) : text;
  }
}

/** `12:00:01 GET    200  1.2 KiB   35 ms  https://…`, cut to the window. */
export function entryLine(row: TrafficSnapshot, terminal: Terminal): string {
  const status =
    row.status_code === null
      ? (row.failure_code ?? (row.is_passthrough ? "tunnel" : row.state))
      : String(row.status_code);
  const isBad = row.status_code === null ? row.failure_code !== null : row.status_code >= 400;
  const time = new Date(row.timestamp).toTimeString().slice(0, 8);
  const parts = [
    terminal.style("dim", time),
    padded(visibleText(row.method), 7),
    terminal.style(isBad ? "red" : "green", padded(visibleText(status), 3)),
    padded(sizeText(row.response_size), 9, "right"),
    padded(durationText(row.duration_ms), 8, "right"),
  ];
  const used = 8 + 1 + 7 + 1 + Math.max(3, status.length) + 1 + 9 + 1 + 8 + 2;
  return `${parts.join(" ")}  ${fitted(visibleText(row.url), Math.max(10, terminal.columns - used), "middle")}`;
}
