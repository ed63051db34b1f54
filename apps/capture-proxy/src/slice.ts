import type { ChangeTopic, SliceName, TaskProgress, TrafficEvent } from "@headworks/capture-contract";
import type { Handlers, Operations } from "@headworks/contract-kit";
import type { Logger } from "pino";
import type { TrafficGauges } from "#exchange/gauges.ts";
import type { Interceptor, Observer } from "#exchange/phases.ts";
import type { SettingsStore } from "#settings/settings.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import type { Database } from "#storage/database.ts";

/** Time comes in by this door, so that tests can move it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds. */
  monotonic(): number;
  /** Calls back repeatedly without keeping the process alive; gives the function that stops it. */
  every(intervalMs: number, callback: () => void): () => void;
  after(delayMs: number, callback: () => void): () => void;
}

/** What an import is called in events, and how many bytes it is going to take in. */
export interface TaskStart {
  /** Chosen by the caller of the API; one is made up without. */
  readonly id: string | undefined;
  readonly kind: TaskProgress["kind"];
  /** The field `Content-Length` of the upload. */
  readonly contentLength: string | string[] | undefined;
}

/** Something that takes long and reports how far it is. */
export type RunTask<T> = (report: (soFar: Pick<TaskProgress, "bytes" | "entries">) => void) => Promise<T>;

/** Where slices tell connected clients what happened. Telling never waits and never throws. */
export interface EventSink {
  traffic(event: TrafficEvent): void;
  changed(topic: ChangeTopic): void;
  /**
   * Runs an import and tells how far it is: whenever `run` reports, and once at its end, good or bad. Gives and throws
   * what `run` does.
   */
  task<T extends { readonly imported_count: number }>(start: TaskStart, run: RunTask<T>): Promise<T>;
  /** True while somebody listens; lets a hot path skip work nobody sees. */
  readonly hasListeners: boolean;
}

/** Addresses the listeners are bound to, known after start. */
export interface Addresses {
  /** `http://127.0.0.1:8888` */
  readonly proxy: string;
  /** `http://127.0.0.1:3001` */
  readonly api: string;
}

/** What a slice gets. */
export interface SliceHost {
  readonly version: string;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Rules and other small state; commits are durable when a call returns. */
  readonly database: Database;
  /** Captured traffic. */
  readonly store: CaptureStore;
  readonly settings: SettingsStore;
  readonly events: EventSink;
  readonly gauges: TrafficGauges;
  readonly addresses: () => Addresses;
}

/** Something periodic or long that a slice runs; ends when the signal aborts. */
export interface SliceWorker {
  start(signal: AbortSignal): void;
}

/** What a slice gives. The composition root reads it; nothing else does. */
export interface Slice<T extends Operations> {
  readonly name: SliceName;
  readonly operations: Handlers<T>;
  readonly interceptor?: Interceptor;
  readonly observer?: Observer;
  readonly worker?: SliceWorker;
}
