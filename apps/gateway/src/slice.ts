import type { ConfigDocument, EventKind, EventPayloads, IssueCode, Listener, Route } from "@headworks/gateway-contract";
import type { Secret } from "@headworks/contract-kit";
import type { Logger } from "pino";
import type { BodyFilter, Decorator, Gate, Observer, RequestChange, ResponseStore, Tracer } from "#request/context.ts";

/** Clocks; replaceable in tests. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds; may be constant within a turn of the event loop. */
  monotonic(): number;
}

/** Receives state changes of the gateway. Never blocks, never throws. */
export interface EventSink {
  emit<K extends EventKind>(kind: K, payload: EventPayloads[K]): void;
}

/** Collects issues of a document. Places are paths from its root. */
export interface IssueReport {
  error(code: IssueCode, fieldPath: readonly (string | number)[], message: string): void;
  warning(code: IssueCode, fieldPath: readonly (string | number)[], message: string): void;
}

/** Inputs of checks besides the document. */
export interface CheckScope {
  readonly clock: Clock;
  /** The text of a field that may be a secret reference; undefined if unavailable, which is reported already. */
  secret(text: string): Secret | undefined;
  /** Content of a file named by the document; undefined if it cannot be read: report it. */
  readFile(path: string): Buffer | undefined;
}

/** Inputs of compilation; the document is validated, so compilation does not fail. */
export interface CompileScope {
  readonly generation: number;
  readonly clock: Clock;
  readonly log: Logger;
  secret(text: string): Secret;
  readFile(path: string): Buffer;
}

/** A slice's part of one generation. Absent members cost nothing. */
export interface CompiledSlice {
  gateFor?(route: Route): Gate | undefined;
  /** For requests without a route. */
  unroutedGateFor?(listener: Listener): Gate | undefined;
  /** For routes with a proxy action. */
  requestChangeFor?(route: Route): RequestChange | undefined;
  decoratorFor?(route: Route): Decorator | undefined;
  bodyFilterFor?(route: Route): BodyFilter | undefined;
  responseStoreFor?(route: Route): ResponseStore | undefined;
  readonly tracer?: Tracer;
  /** The generation was published: timers, targets and other background work switch to it. */
  published?(): void;
}

/** A slice of the gateway. State that outlives a generation belongs to the slice. */
export interface GatewaySlice {
  readonly name: string;
  /** Checks beyond the schema. */
  check?(document: ConfigDocument, report: IssueReport, scope: CheckScope): void;
  compile?(document: ConfigDocument, scope: CompileScope): CompiledSlice;
  readonly observer?: Observer;
  /** After the last request. */
  stop?(): Promise<void>;
}
