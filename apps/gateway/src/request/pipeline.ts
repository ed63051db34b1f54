import type { SharedBytes } from "@headworks/sockets";
import type { Logger } from "pino";
import type { AdmissionControl } from "./admission.ts";
import { type ErrorCode, namedMethods } from "@headworks/gateway-contract";
import { fieldValue, isLastRecipient, NO_BODY, type RawFields, tracedRequest } from "@headworks/http1";
import {
  type ClientHandler,
  type ClientStream,
  type CompiledRoute,
  type FinishedRequest,
  type Gate,
  type KeptResponse,
  type Observer,
  RequestContext,
  type Response,
  type ResponseStore,
  type Verdict,
} from "./context.ts";
import { withConditions } from "./forwarded-fields.ts";
import { acceptableRequestId, LOWER_CORRELATION, requestIdFor, X_REQUEST_ID } from "./forwarding-rules.ts";
import { type ConnectionSource, ProxiedRequest } from "./proxied-request.ts";
import { ResponseSender } from "./response-sender.ts";

/** Limits of a request without a client, where no one would notice an upstream that never ends. */
const MAX_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Discards a response that has no client. */
class NoClient implements ClientStream {
  readonly version = "1.1";
  readonly canUpgrade = false;
  readonly bodyBytesHere = 0;
  handler: ClientHandler | undefined;
  #bytes = 0;
  readonly #timer = setTimeout(() => this.#cancel(), MAX_MS).unref();

  /** The exchange has ended. */
  stop(): void {
    clearTimeout(this.#timer);
    this.handler = undefined;
  }

  sendData(piece: SharedBytes): void {
    this.#bytes += piece.length;
    // Deferred: must not run inside a call to this stream.
    if (this.#bytes > MAX_BYTES) setImmediate(() => this.#cancel());
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

  #cancel(): void {
    const { handler } = this;
    this.handler = undefined;
    handler?.onClientGone();
  }
}

/** Response to `OPTIONS *`, which concerns the server itself (RFC 9110, 9.3.7). */
const WHOLE_SERVER: Response = { status: 200, fields: [], body: "" };

export interface PipelineParts {
  readonly pools: ConnectionSource;
  readonly observers: readonly Observer[];
  /** Serves the gateway's own paths (`/healthz`, `/readyz`, on some listeners `/metrics`); undefined for all others. */
  readonly reserved: (request: RequestContext) => Response | undefined | Promise<Response>;
  /** Describes why a target may not be routed or forwarded. */
  readonly targetProblem: (target: string) => string | undefined;
  /** Admits a request to its action. */
  readonly admission: AdmissionControl;
  readonly log: Logger;
}

const NO_GATES: readonly Gate[] = [];

/** Handles a request from its head to the end of its response. */
export class Pipeline {
  readonly #parts: PipelineParts;
  #active = 0;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  /** Requests between their head and the end of their response. */
  get activeRequests(): number {
    return this.#active;
  }

  handle(request: RequestContext, stream: ClientStream): void {
    this.#active += 1;
    const idField = request.generation.requestIdField ?? X_REQUEST_ID;
    request.requestId = requestIdFor(fieldValue(request.fields, idField.lowerName));
    request.correlationId = request.requestId;
    if (idField.hasCorrelation) {
      request.correlationId = acceptableRequestId(fieldValue(request.fields, LOWER_CORRELATION)) ?? request.requestId;
    }
    request.trace = request.generation.tracer?.begin(request);
    const delivery = new ResponseSender(request, stream, this.#onDone);
    try {
      this.#route(request, delivery);
    } catch (error) {
      this.#failed(delivery, error);
    }
  }

  #route(request: RequestContext, delivery: ResponseSender): void {
    const problem = this.#parts.targetProblem(request.target);
    if (problem !== undefined) {
      const response = request.target === "*" ? WHOLE_SERVER : { code: "bad_request" as const, message: problem };
      return delivery.response(response, "short-circuit");
    }
    const reserved = this.#parts.reserved(request);
    if (reserved !== undefined) {
      return this.#when(delivery, reserved, (response) => delivery.response(response, "short-circuit"));
    }
    if (!request.generation.routes.resolve(request) || request.route === undefined) {
      const gates = request.generation.unroutedGates.get(request.listener.name) ?? NO_GATES;
      return this.#gates(delivery, gates, 0, () => delivery.response({ code: "no_route" }, "short-circuit"));
    }
    const { route, generation } = request;
    // Before quotas and limits charge the request.
    if (route.action.kind === "proxy" && generation.via?.isLoop(request.fields) === true) {
      return delivery.response({ code: "loop_detected" }, "short-circuit");
    }
    this.#gates(delivery, route.gates, 0, () => this.#admit(delivery, route));
  }

  /** Runs the gates in order; stays synchronous unless a gate returns a promise. */
  #gates(delivery: ResponseSender, gates: readonly Gate[], from: number, passed: () => void): void {
    for (let at = from; at < gates.length; at++) {
      const verdict = gates[at]?.check(delivery.request);
      if (verdict === undefined) continue;
      if (verdict instanceof Promise) {
        return this.#when(delivery, verdict, (later) => {
          if (later === undefined) this.#gates(delivery, gates, at + 1, passed);
          else delivery.response(later, "short-circuit");
        });
      }
      return delivery.response(verdict, "short-circuit");
    }
    passed();
  }

  #admit(delivery: ResponseSender, route: CompiledRoute): void {
    const admitted = this.#parts.admission.admit(delivery.request);
    if (admitted instanceof Promise) void this.#admitLater(delivery, route, admitted);
    else this.#admitted(delivery, route, admitted);
  }

  #admitted(delivery: ResponseSender, route: CompiledRoute, verdict: true | NonNullable<Verdict>): void {
    if (verdict === true) return this.#act(delivery, route);
    delivery.request.wasShed = true;
    delivery.response(verdict, "short-circuit");
  }

  async #admitLater(
    delivery: ResponseSender,
    route: CompiledRoute,
    admitted: Promise<true | NonNullable<Verdict>>,
  ): Promise<void> {
    delivery.waitsForPermit = true;
    try {
      const verdict = await admitted;
      delivery.waitsForPermit = false;
      if (!delivery.isEnded) this.#admitted(delivery, route, verdict);
      // The client disconnected at the same moment: release the permit for others.
      else if (verdict === true) this.#parts.admission.release();
    } catch (error) {
      this.#failed(delivery, error);
    }
  }

  #act(delivery: ResponseSender, route: CompiledRoute): void {
    delivery.hasPermit = true;
    const { request } = delivery;
    const store = route.responseStore;
    if (store === undefined) return this.#run(delivery, route);
    const found = store.lookup(request);
    const decided = (known: KeptResponse): void => {
      if (known === "miss") {
        delivery.capturesResponse = true;
        this.#run(delivery, route);
      } else if (known === "bypass") this.#run(delivery, route);
      else if ("validation" in known) {
        request.validation = known.validation;
        delivery.capturesResponse = true;
        this.#run(delivery, route);
      } else if ("stale" in known) {
        delivery.response(known.stale, "action");
        this.#refresh(request, route, store, known.conditions);
      } else delivery.response(known, "action");
    };
    if (found instanceof Promise) this.#when(delivery, found, decided);
    else decided(found);
  }

  /** Fetches a stale response again; the client has already received the old one. */
  #refresh(stale: RequestContext, route: CompiledRoute, store: ResponseStore, conditions: Readonly<RawFields>): void {
    if (route.action.kind !== "proxy") return;
    const { request, stream } = refreshRequest(stale, route, conditions);
    const delivery = new ResponseSender(request, stream, ({ wasCaptured }) => {
      stream.stop();
      if (!wasCaptured) store.abandon(request);
    });
    delivery.capturesResponse = true;
    try {
      new ProxiedRequest(delivery, route.action, this.#parts.pools).start();
    } catch (error) {
      this.#failed(delivery, error);
    }
  }

  #run(delivery: ResponseSender, route: CompiledRoute): void {
    const { action } = route;
    if (action.kind === "response") return delivery.response(action.response(delivery.request), "action");
    const own = lastRecipientsResponse(delivery.request);
    if (own !== undefined) return delivery.response(own, "action");
    new ProxiedRequest(delivery, action, this.#parts.pools).start();
  }

  #when<T>(delivery: ResponseSender, value: T | Promise<T>, next: (value: T) => void): void {
    if (value instanceof Promise) void this.#later(delivery, value, next);
    else next(value);
  }

  /** Continues when the promise is resolved, unless the client disconnected meanwhile. */
  async #later<T>(delivery: ResponseSender, value: Promise<T>, next: (value: T) => void): Promise<void> {
    try {
      const settled = await value;
      if (!delivery.isEnded) next(settled);
    } catch (error) {
      this.#failed(delivery, error);
    }
  }

  /** An internal error ends this request, not the process. */
  #failed(delivery: ResponseSender, error: unknown): void {
    this.#parts.log.error(
      { err: error, request_id: delivery.request.requestId },
      "A request failed inside the gateway",
    );
    if (delivery.isEnded) return;
    if (delivery.isStarted) delivery.abort();
    else delivery.response({ code: "internal" }, "short-circuit");
  }

  /** A malformed request was refused: observers are notified as for any other request. */
  refused(request: RequestContext, status: number, code: ErrorCode, sentBytes: number): void {
    this.#notify({ request, status, origin: "short-circuit", code, durationMs: 0, sentBytes, isComplete: true });
  }

  #notify(finished: FinishedRequest): void {
    for (const observer of this.#parts.observers) {
      try {
        observer.onFinished(finished);
      } catch (error) {
        this.#parts.log.error(
          { err: error, request_id: finished.request.requestId },
          "An observer failed at the end of a request",
        );
      }
    }
  }

  readonly #onDone = (delivery: ResponseSender): void => {
    this.#active -= 1;
    const { request } = delivery;
    if (delivery.hasPermit) this.#parts.admission.release();
    else if (delivery.waitsForPermit) request.leaveAdmission?.();
    if (delivery.capturesResponse && !delivery.wasCaptured) request.route?.responseStore?.abandon(request);
    const finished: FinishedRequest = {
      request,
      status: delivery.status,
      origin: delivery.origin,
      code: delivery.code satisfies ErrorCode | undefined,
      durationMs: performance.now() - request.startedMs,
      sentBytes: delivery.sentBytes,
      isComplete: delivery.isComplete,
    };
    this.#notify(finished);
  };
}

/** The gateway's response if the request must not reach the upstream any more; otherwise undefined. */
function lastRecipientsResponse(request: RequestContext): Response | undefined {
  const { method, fields } = request;
  if (!isLastRecipient(method, fields)) return undefined;
  return method === "TRACE" ? reflection(request) : { status: 200, fields: allowed(request), body: "" };
}

/** `Allow` is known only if the route lists methods; anything else is for the upstream to decide. */
function allowed({ route }: RequestContext): RawFields {
  const list = namedMethods(route?.document.methods) ?? namedMethods(route?.document.match.methods);
  return list === undefined ? [] : ["Allow", list.join(", ")];
}

function reflection({ method, sentTarget, version, fields, credentialFields }: RequestContext): Response {
  const received = { method, target: sentTarget, version, fields };
  const body = tracedRequest(
    received,
    (name) => name.startsWith("x-consumer-") || credentialFields?.has(name) === true,
  );
  return { status: 200, fields: ["Content-Type", "message/http"], body };
}

/**
 * The client's request again, without the client and with other conditions. It runs only the action: guards and
 * decorators were applied to the response that the client has.
 */
function refreshRequest(
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
