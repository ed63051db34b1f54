import type { ChangeTopic, Notice, SliceName, TaskProgress, TrafficEvent } from "@headworks/capture-contract";
import type { Handlers, Operations } from "@headworks/contract-kit";
import type { Logger } from "pino";
import type { TrafficGauges } from "#exchange/gauges.ts";
import type { SendExchange } from "#exchange/outgoing.ts";
import type { Interceptor, Observer } from "#exchange/phases.ts";
import type { ServiceLogs } from "#logging/service-logs.ts";
import type { SettingsStore } from "#settings/settings.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import type { Database } from "#storage/database.ts";
import type { StreamStore } from "#storage/streams/stream-store.ts";

/** Time comes in by this door, so that tests can move it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds. */
  monotonic(): number;
  /** Calls back repeatedly without keeping the process alive; gives the function that stops it. */
  every(intervalMs: number, callback: () => void): () => void;
  after(delayMs: number, callback: () => void): () => void;
  /** Calls back once what is ready now was seen to, before anything is waited for. */
  soon(callback: () => void): void;
}

/** What something long is called in events, and how much it is going to do. */
export interface TaskStart {
  /** Chosen by the caller of the API; one is made up without. */
  readonly id: string | undefined;
  readonly kind: TaskProgress["kind"];
  /** The field `Content-Length` of the upload. */
  readonly contentLength: string | string[] | undefined;
  /** Where it is known from the start. */
  readonly totalEntries?: number;
}

/** How much was done at the end. */
export type TaskResult = { readonly imported_count: number } | { readonly completed: number };

/** Something that takes long and reports how far it is. */
export type RunTask<T> = (report: (soFar: Pick<TaskProgress, "bytes" | "entries">) => void) => Promise<T>;

/** Where slices tell connected clients what happened. Telling never waits and never throws. */
export interface EventSink {
  traffic(event: TrafficEvent): void;
  changed(topic: ChangeTopic): void;
  notice(notice: Notice): void;
  /**
   * Runs something long and tells how far it is: whenever `run` reports, and once at its end, good or bad. Gives and
   * throws what `run` does.
   */
  task<T extends TaskResult>(start: TaskStart, run: RunTask<T>): Promise<T>;
  /** True while somebody listens; lets a hot path skip work nobody sees. */
  readonly hasListeners: boolean;
}

/** Addresses the listeners are bound to, known after start. */
export interface Addresses {
  /** `http://127.0.0.1:8888` */
  readonly proxy: string;
  /** `http://127.0.0.1:3001` */
  readonly api: string;
  /** `socks5://127.0.0.1:1080`; undefined where that listener is off. */
  readonly socks: string | undefined;
}

/** A proxy whose clients' exchanges belong to one session. */
export interface SessionProxy {
  /** `http://127.0.0.1:45123` */
  readonly url: string;
  readonly clientCount: number;
  /** Milliseconds since a client came or went. */
  readonly idleMs: number;
  /** Takes no more clients, and ends those that are there. */
  close(): Promise<void>;
}

/** Opens a proxy on a port of the system's choice, at the address of the proxy itself. Rejects with the system's error. */
export type OpenSessionProxy = (session: number) => Promise<SessionProxy>;

/** What a slice gets. */
export interface SliceHost {
  readonly version: string;
  /** How the command is called where this was started: `weir`, or `npx weir` in a clone. */
  readonly command: string;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Rules and other small state; commits are durable when a call returns. */
  readonly database: Database;
  /** Captured traffic. */
  readonly store: CaptureStore;
  /** Frames of everything that streams. */
  readonly streams: StreamStore;
  readonly settings: SettingsStore;
  /** The log's files; undefined where the log goes to a stream alone. */
  readonly logs: ServiceLogs | undefined;
  readonly events: EventSink;
  readonly gauges: TrafficGauges;
  readonly addresses: () => Addresses;
  /** Sends a request as if a client had: rules, capture and upstream settings apply. */
  readonly send: SendExchange;
}

/** Something periodic or long that a slice runs; ends when the signal aborts. */
export interface SliceTask {
  start(signal: AbortSignal): void;
  /** Awaited when the service stops, after the signal and before the stores close; it bounds its own time. */
  stopped?(): Promise<void>;
}

/** `merge`: rules of the bundle are added or overwrite those of the same id. `replace`: afterwards there are no others. */
export type ImportMode = "merge" | "replace";

/** What an import of one kind of rules does, in rules. */
export interface ImportCounts {
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
  readonly unchanged: number;
}

/** Issues have JSON pointers below the section, such as `/3/pattern`; with any of them nothing was written. */
export type ImportOutcome =
  | { readonly counts: ImportCounts }
  | { readonly issues: readonly { readonly path: string; readonly message: string }[] };

export interface ImportRequest {
  readonly mode: ImportMode;
  /** Check and count, write nothing. */
  readonly dryRun: boolean;
  /** The `schemaVersion` the data was written with; at most the own one. */
  readonly version: number;
}

/**
 * One kind of rules that can be taken out and put in elsewhere. A slice joins export, import, save and load of rules by
 * giving this; `portableList` in `#portable/portable-list.ts` makes it for rules in a list, `blocklist.slice.ts` shows it.
 *
 * What `exportRules` gives, `importRules` takes in again without a difference, ids, times and order included. An import is
 * all or nothing over all slices: first every slice is asked with `dryRun`, then all are asked to write inside one
 * transaction of `host.database`, and only after its commit `reload` is called. So `importRules` writes to the database
 * and to nothing else: what is in memory must stay true when the transaction is undone.
 */
export interface PortableRules {
  /** The section of the bundle, in snake case: `mocks`. */
  readonly key: string;
  /** Version of the section's form, from 1 on; bundles with a newer one are refused before the slice sees them. */
  readonly schemaVersion: number;
  /** Plain JSON; rules in a list stand oldest first, in the form in which the API shows them. */
  exportRules(): unknown;
  /** Checks the section wholly before anything is written. */
  importRules(data: unknown, request: ImportRequest): ImportOutcome;
  /** The stored rules are others now: compile them and announce it. */
  reload(): void;
}

/** What a slice gives. The composition root reads it; nothing else does. */
export interface Slice<T extends Operations> {
  readonly name: SliceName;
  readonly operations: Handlers<T>;
  readonly interceptor?: Interceptor;
  readonly observer?: Observer;
  readonly worker?: SliceTask;
  readonly portableRules?: PortableRules;
}
