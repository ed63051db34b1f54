import type { Moments, RequestMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { MutableGauges } from "#exchange/gauges.ts";
import { ConnectionHistory, machineOf, type SharedRequest } from "#upstream/idle-origins.ts";
import {
  ALL_PROTOCOLS,
  type ApplicationProtocol,
  type Destination,
  type Dialled,
  isSameDestination,
  ONLY_HTTP1,
} from "#upstream/destination.ts";
import { OriginConnection } from "#upstream/origin-connection.ts";
import { OriginSession, type SessionEvents } from "#upstream/origin-session.ts";
import type { Origin, OriginRequest } from "#upstream/origin.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { ForwardPlan } from "./request-plan.ts";

/** Origin connections kept per client connection; only plain proxy requests need more than one. */
const MAX_ORIGINS = 8;

/**
 * What is known about the protocol before connecting. `any`: ALPN decides, or HTTP/1.1 without TLS. `http2`: HTTP/2 by
 * prior knowledge without TLS. `upgrade`: HTTP/1.1, for an upgrade. `websocket`: HTTP/2 if the origin supports
 * extended CONNECT, otherwise an upgrade.
 */
type UpstreamRequirement = "any" | "http2" | "upgrade" | "websocket";

/** Receives the outcome of one acquisition, exactly once. */
interface OriginResult {
  connected(origin: Origin): void;
  failed(failure: Failure): void;
}

interface Waiter {
  readonly moments: Moments;
  readonly result: OriginResult;
  /** Cancels the current wait. */
  abandon: () => void;
  isFinished: boolean;
}

/** One connection attempt shared by several exchanges of a client, since an HTTP/2 connection can serve them all. */
interface SharedDial {
  readonly destination: Destination;
  readonly requirement: UpstreamRequirement;
  /** `IdleOrigins.age` when the attempt began. */
  readonly age: number;
  readonly waiters: Set<Waiter>;
  abandon: () => void;
}

/**
 * The origin connections of one client connection. They are never shared between clients; a later client may only
 * inherit a connection that was left in a clean state.
 */
export class UpstreamConnections implements SessionEvents {
  readonly #onGoaway: (origin: Destination) => void;
  readonly #services: ProxyServices;
  readonly #clientAddress: string | undefined;
  readonly #connections: OriginConnection[] = [];
  readonly #sessions: OriginSession[] = [];
  readonly #dials: SharedDial[] = [];
  /** Destinations that were offered HTTP/2 and chose HTTP/1.1. */
  readonly #http1Destinations: Destination[] = [];

  /** `clientAddress`: undefined for Weir's own requests. `onGoaway`: an origin ends its connection. */
  constructor(services: ProxyServices, clientAddress: string | undefined, onGoaway: (origin: Destination) => void) {
    this.#services = services;
    this.#clientAddress = clientAddress;
    this.#onGoaway = onGoaway;
  }

  /** An open connection to the destination that can take another request. */
  ready(destination: Destination, requirement: UpstreamRequirement): Origin | undefined {
    if (this.#sessions.length > 0 && requirement !== "upgrade") {
      const session = this.#sessions.find((known) => this.#serves(known, destination, requirement));
      if (session) return session.open();
    }
    if (!this.#wantsHttp1(destination, requirement) && !destination.secure) return undefined;
    return this.#connections.find(
      (known) =>
        known.isIdle &&
        isSameDestination(known.destination, destination) &&
        (requirement === "any" || !known.isForwarded),
    );
  }

  /** An idle connection of an earlier client connection, if this request may use it. */
  inherit(destination: Destination, requirement: UpstreamRequirement, request: SharedRequest): Origin | undefined {
    if (requirement !== "any") return undefined;
    const isHttp1 = this.#isHttp1(destination);
    const origin = this.#services.idleOrigins.take(
      destination,
      machineOf(this.#clientAddress),
      request,
      (known) => known instanceof OriginConnection || !isHttp1,
    );
    if (origin instanceof OriginSession) {
      origin.serve(this);
      return this.#addSession(origin).open();
    }
    if (origin === undefined) return undefined;
    if (destination.secure) this.#noteHttp1(destination);
    return this.#own(origin);
  }

  /** Opens a connection or joins an attempt in progress. Returns the function that cancels the wait. */
  open(destination: Destination, requirement: UpstreamRequirement, moments: Moments, result: OriginResult): () => void {
    const { dialer, idleOrigins } = this.#services;
    if (this.#wantsHttp1(destination, requirement)) {
      const { age } = idleOrigins;
      return dialer.dial(
        requirement === "any" || destination.secure ? destination : { ...destination, tunnel: true },
        moments,
        {
          connected: (dialled) => result.connected(this.#ownConnection(destination, dialled, age)),
          failed: (failure) => result.failed(failure),
        },
        ONLY_HTTP1,
      );
    }
    const dial = this.#dialFor(destination, requirement, moments);
    const waiter: Waiter = { moments, result, isFinished: false, abandon: () => this.#leave(dial, waiter) };
    dial.waiters.add(waiter);
    return () => {
      waiter.isFinished = true;
      waiter.abandon();
    };
  }

  /** The client disconnected: closes its origins or leaves clean ones idle. */
  end(): void {
    // Iterates over copies: each entry removes itself when it is closed.
    for (const dial of this.#dials.slice()) this.#forget(dial);
    const left = [...this.#sessions.splice(0), ...this.#connections.splice(0)];
    if (left.length === 0) return;
    const machine = machineOf(this.#clientAddress);
    for (const origin of left) {
      this.#services.gauges.upstreamConnections -= 1;
      this.#services.idleOrigins.keep(origin, machine);
    }
  }

  gone(session: OriginSession): void {
    const at = this.#sessions.indexOf(session);
    if (at === -1) return;
    this.#sessions.splice(at, 1);
    this.#services.gauges.upstreamConnections -= 1;
  }

  closing({ destination }: OriginSession): void {
    this.#onGoaway(destination);
  }

  http1Required({ destination }: OriginSession): void {
    this.#noteHttp1(destination);
  }

  #serves(session: OriginSession, destination: Destination, requirement: UpstreamRequirement): boolean {
    if (!session.hasRoom || !isSameDestination(session.destination, destination)) return false;
    return requirement === "websocket" ? session.acceptsWebSockets : session.hasSettings || destination.secure;
  }

  #wantsHttp1(destination: Destination, requirement: UpstreamRequirement): boolean {
    if (requirement === "upgrade" || this.#isHttp1(destination)) return true;
    if (requirement === "any") return !destination.secure;
    // An origin may speak HTTP/2 and support WebSockets over HTTP/1.1 only.
    const refuses = (session: OriginSession): boolean =>
      session.hasSettings && !session.acceptsWebSockets && isSameDestination(session.destination, destination);
    return requirement === "websocket" && this.#sessions.some(refuses);
  }

  #dialFor(destination: Destination, requirement: UpstreamRequirement, moments: Moments): SharedDial {
    const known = this.#dials.find(
      (dial) => dial.requirement === requirement && isSameDestination(dial.destination, destination),
    );
    if (known) return known;
    const { dialer, idleOrigins } = this.#services;
    const { age } = idleOrigins;
    const dial: SharedDial = { destination, requirement, age, waiters: new Set(), abandon: () => undefined };
    this.#dials.push(dial);
    const offered: readonly ApplicationProtocol[] = destination.secure ? ALL_PROTOCOLS : ONLY_HTTP1;
    dial.abandon = dialer.dial(
      destination.secure ? destination : { ...destination, tunnel: true },
      moments,
      {
        connected: (dialled) => this.#connected(dial, dialled),
        failed: (failure) => {
          for (const { result } of this.#settle(dial)) result.failed(failure);
        },
      },
      offered,
    );
    return dial;
  }

  #connected(dial: SharedDial, dialled: Dialled): void {
    const { destination, requirement } = dial;
    if (dialled.protocol === "http/1.1" && destination.secure) return this.#serveHttp1(dial, dialled);
    const session = this.#ownSession(destination, dialled, dial.age);
    // With prior knowledge alone, requests wait until the origin has proved that it speaks HTTP/2.
    const servesFirst = destination.secure && requirement !== "websocket";
    const abandon = (): void => (servesFirst ? undefined : session.destroy());
    dial.abandon = abandon;
    // A single request need not wait for the origin's SETTINGS.
    if (servesFirst) this.#serveWaiters(dial, session);
    session.whenSettled(() => this.#serveHttp2(dial, session));
  }

  /** The first waiter gets the connection; each other one needs its own. */
  #serveHttp1(dial: SharedDial, dialled: Dialled): void {
    const { destination, age } = dial;
    this.#noteHttp1(destination);
    const [first, ...others] = this.#settle(dial);
    const origin = this.#ownConnection(destination, dialled, age);
    first?.result.connected(origin);
    this.#again(dial, others);
  }

  #serveHttp2(dial: SharedDial, session: OriginSession): void {
    if (!this.#dials.includes(dial)) return;
    if (!session.hasSettings && dial.waiters.size > 0) this.#noteHttp1(dial.destination);
    this.#serveWaiters(dial, session);
    this.#again(dial, this.#settle(dial));
  }

  #serveWaiters({ waiters, destination, requirement }: SharedDial, session: OriginSession): void {
    for (const waiter of waiters) {
      if (!this.#serves(session, destination, requirement)) return;
      waiters.delete(waiter);
      waiter.result.connected(session.open());
    }
  }

  #again({ destination, requirement }: SharedDial, waiters: readonly Waiter[]): void {
    for (const waiter of waiters) {
      if (waiter.isFinished) continue;
      const { moments, result } = waiter;
      const ready = this.ready(destination, requirement);
      if (ready) result.connected(ready);
      else waiter.abandon = this.open(destination, requirement, moments, result);
    }
  }

  #leave(dial: SharedDial, waiter: Waiter): void {
    dial.waiters.delete(waiter);
    if (dial.waiters.size === 0) this.#forget(dial);
  }

  /** Ends the attempt and returns the exchanges still waiting for it. */
  #settle(dial: SharedDial): Waiter[] {
    const at = this.#dials.indexOf(dial);
    if (at !== -1) this.#dials.splice(at, 1);
    return [...dial.waiters];
  }

  #forget(dial: SharedDial): void {
    this.#settle(dial);
    dial.abandon();
  }

  #isHttp1(destination: Destination): boolean {
    return this.#http1Destinations.some((known) => isSameDestination(known, destination));
  }

  #noteHttp1(destination: Destination): void {
    if (this.#isHttp1(destination)) return;
    this.#http1Destinations.push(destination);
    if (this.#http1Destinations.length > MAX_ORIGINS) this.#http1Destinations.shift();
  }

  #ownConnection(destination: Destination, dialled: Dialled, age: number): OriginConnection {
    const history = dialled.isDirect ? new ConnectionHistory(age) : undefined;
    return this.#own(new OriginConnection(destination, dialled, history, this.#services.policy().headLimits));
  }

  #own(origin: OriginConnection): OriginConnection {
    const onGone = (): void => this.#disown(origin);
    origin.onGone = onGone;
    this.#makeRoom();
    this.#connections.push(origin);
    this.#services.gauges.upstreamConnections += 1;
    return origin;
  }

  #ownSession(destination: Destination, dialled: Dialled, age: number): OriginSession {
    // Without TLS the client chooses the protocol, and another client may choose a different one.
    const history = dialled.isDirect && destination.secure ? new ConnectionHistory(age) : undefined;
    return this.#addSession(
      new OriginSession(destination, dialled, history, {
        events: this,
        limits: this.#services.policy().headLimits,
        settingsMs: this.#services.dialer.timeoutMs,
      }),
    );
  }

  #addSession(session: OriginSession): OriginSession {
    this.#makeRoom();
    this.#sessions.push(session);
    this.#services.gauges.upstreamConnections += 1;
    return session;
  }

  #makeRoom(): void {
    if (this.#connections.length + this.#sessions.length < MAX_ORIGINS) return;
    const idle = this.#connections.find(({ isIdle }) => isIdle) ?? this.#sessions.find(({ isIdle }) => isIdle);
    idle?.destroy();
  }

  #disown(origin: OriginConnection): void {
    const at = this.#connections.indexOf(origin);
    if (at === -1) return;
    this.#connections.splice(at, 1);
    this.#services.gauges.upstreamConnections -= 1;
  }
}

/** The upstream connection of one exchange: acquired, held and released. */
export class UpstreamLease {
  origin: Origin | undefined;
  readonly #origins: UpstreamConnections;
  readonly #gauges: MutableGauges;
  /** Set while a connection is being opened. */
  #abandonDial: (() => void) | undefined;

  constructor(origins: UpstreamConnections, gauges: MutableGauges) {
    this.#origins = origins;
    this.#gauges = gauges;
  }

  /** Returns a connection that is ready now. A retry always needs a new one. */
  ready(plan: ForwardPlan, request: OriginRequest, holder: LeaseHolder): Origin | undefined {
    if (request.isRetry) return undefined;
    const { destination } = plan;
    const requirement = requirementOf(plan, request, holder);
    return this.#origins.ready(destination, requirement) ?? this.#origins.inherit(destination, requirement, request);
  }

  /** Opens a connection for the request; `result` is not called once the lease is released. */
  open(plan: ForwardPlan, request: OriginRequest, holder: LeaseHolder, result: OriginResult): void {
    this.#gauges.pendingRequests += 1;
    this.#abandonDial = this.#origins.open(plan.destination, requirementOf(plan, request, holder), holder.moments, {
      connected: (origin) => {
        this.#dialEnded();
        result.connected(origin);
      },
      failed: (failure) => {
        this.#dialEnded();
        result.failed(failure);
      },
    });
  }

  /** Cancels a pending dial or resets the connection in use. */
  release(resetCode?: number): void {
    this.#abandonDial?.();
    this.#dialEnded();
    this.origin?.destroy(resetCode);
    this.origin = undefined;
  }

  #dialEnded(): void {
    if (this.#abandonDial === undefined) return;
    this.#abandonDial = undefined;
    this.#gauges.pendingRequests -= 1;
  }
}

interface LeaseHolder {
  readonly request: Readonly<RequestMessage>;
  readonly moments: Moments;
}

function requirementOf(
  { isHttp2Known, destination }: ForwardPlan,
  { upgrade }: OriginRequest,
  holder: LeaseHolder,
): UpstreamRequirement {
  if (upgrade === undefined) return isHttp2Known ? "http2" : "any";
  const isStream = holder.request.version === "HTTP/2" && (isHttp2Known || destination.secure);
  return isStream ? "websocket" : "upgrade";
}
