import type { ConfigDocument, EventKind, EventPayloads, IssueCode, Listener, Route } from "@headworks/gateway-contract";
import type { Secret } from "@headworks/contract-kit";
import type { Logger } from "pino";
import type { Tracer } from "#request/request-trace.ts";
import type { ResponseStore, BodyFilter, Decorator, Gate, Observer, RequestChange } from "#request/phases.ts";

/** Time, by the door, so that tests can move it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds; they may stand still within a turn of the event loop. */
  monotonic(): number;
}

/** Where state changes of the gateway are told. Never blocks, never throws. */
export interface EventSink {
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void;
}

/** Collects what is wrong with a document. Places are the steps from its root. */
export interface IssueReport {
  error(code: IssueCode, place: readonly (string | number)[], message: string): void;
  warning(code: IssueCode, place: readonly (string | number)[], message: string): void;
}

/** What checks may look at besides the document. */
export interface CheckScope {
  readonly clock: Clock;
  /** The text of a field that may be a secret reference; undefined when that cannot be had, which is reported already. */
  secret(text: string): Secret | undefined;
  /** Content of a file named by the document; undefined when it cannot be read: report it. */
  readFile(path: string): Buffer | undefined;
}

/** What compiling may use; everything was checked, so nothing here fails. */
export interface CompileScope {
  readonly generation: number;
  readonly clock: Clock;
  readonly log: Logger;
  secret(text: string): Secret;
  readFile(path: string): Buffer;
}

/** A slice's part of one generation. Everything absent costs nothing. */
export interface CompiledSlice {
  gateFor?(route: Route): Gate | undefined;
  /** For requests that no route takes. */
  unroutedGateFor?(listener: Listener): Gate | undefined;
  /** For routes whose action is proxy. */
  requestChangeFor?(route: Route): RequestChange | undefined;
  decoratorFor?(route: Route): Decorator | undefined;
  bodyFilterFor?(route: Route): BodyFilter | undefined;
  responseStoreFor?(route: Route): ResponseStore | undefined;
  /** Notes how requests of this generation are handled. */
  readonly tracer?: Tracer;
  /** The generation was published: what runs outside of requests (timers, targets) switches to it now. */
  published?(): void;
}

/** What a slice gives to the gateway. State that outlives a generation belongs to the slice. */
export interface GatewaySlice {
  readonly name: string;
  /** What the schema cannot say. */
  check?(document: ConfigDocument, report: IssueReport, scope: CheckScope): void;
  compile?(document: ConfigDocument, scope: CompileScope): CompiledSlice;
  readonly observer?: Observer;
  /** After the last request. */
  stop?(): Promise<void>;
}
