import { useSyncExternalStore } from "react";
import type {
  ChangeTopic,
  ClientMessage,
  FrameEvent,
  Notice,
  ServerMessage,
  TaskProgress,
  TrafficEvent,
} from "@headworks/capture-contract";

const FIRST_MS = 500;

/** Maximum reconnect delay of a hidden window. */
const MAX_MS = 15_000;

/** Maximum reconnect delay of a visible window, so that it recovers soon after the service restarts. */
const MAX_WATCHED_MS = 2000;

/** State of the live channel. `retryAtMs` is the time of the next attempt. */
export type Connection =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  | { readonly state: "reconnecting"; readonly retryAtMs: number; readonly attempt: number }
  | { readonly state: "offline"; readonly retryAtMs: number; readonly attempt: number };

/** Callbacks of the live channel. `resync`: events were missed and lists must be fetched again. */
export interface LiveListener {
  readonly traffic?: (events: readonly TrafficEvent[]) => void;
  readonly resync?: () => void;
  readonly changed?: (topic: ChangeTopic) => void;
  readonly task?: (task: TaskProgress) => void;
  readonly notice?: (notice: Notice) => void;
  /** Stream frames, subscribed to while a listener has this callback. */
  readonly frames?: (frames: readonly FrameEvent[]) => void;
  /** Frames were missed; `resync` implies it. */
  readonly framesMissed?: () => void;
}

/** Failed attempts after which the service counts as offline rather than restarting. */
const OFFLINE_AFTER = 4;
/** Silence after which the connection is probed; it is closed if the probe gets no response. */
const SILENCE_MS = 25_000;
const PROBE_MS = 5000;
const listeners = new Set<LiveListener>();
const watchers = new Set<() => void>();
let connection: Connection = { state: "connecting" };
let socket: WebSocket | null = null;
let attempt = 0;
let retryTimer: number | undefined;
let silenceTimer: number | undefined;
let wasLive = false;

function setConnection(next: Connection): void {
  connection = next;
  for (const watcher of watchers) watcher();
}

/** Adds a listener; the returned function removes it. */
export function listenLive(listener: LiveListener): () => void {
  listeners.add(listener);
  if (listener.frames !== undefined) subscribe();
  return () => {
    listeners.delete(listener);
    if (listener.frames !== undefined) subscribe();
  };
}

/** Whether this connection has subscribed to the channel of frames. */
let isSubscribedToFrames = false;

function subscribe(isFresh = false): void {
  const wanted = [...listeners].some((listener) => listener.frames !== undefined);
  if (!isFresh && wanted === isSubscribedToFrames) return;
  isSubscribedToFrames = wanted;
  send({ type: "Subscribe", data: { channels: wanted ? ["changes", "tasks", "frames"] : ["changes", "tasks"] } });
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connection,
  );
}

/** Opens the channel and keeps it open. Called once, by the entry point. */
export function startLive(): void {
  connect();
  // A laptop that wakes up need not wait for the timer.
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") retryNow();
  });
}

/** Retries now instead of at the end of the countdown. */
export function retryNow(): void {
  if (connection.state !== "reconnecting" && connection.state !== "offline") return;
  probe();
}

let isProbing = false;

/** Probes over HTTP before it opens the channel: browsers throttle failing WebSockets only. */
function probe(): void {
  window.clearTimeout(retryTimer);
  if (isProbing || socket !== null) return;
  isProbing = true;
  void isServiceUp().then((isUp) => {
    isProbing = false;
    if (isUp) connect();
    else lost();
  });
}

async function isServiceUp(): Promise<boolean> {
  try {
    return (await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) })).ok;
  } catch {
    return false;
  }
}

function connect(): void {
  const url = new URL("/ws?batch=1", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let opened: WebSocket;
  try {
    opened = new WebSocket(url);
  } catch {
    lost();
    return;
  }
  socket = opened;
  opened.addEventListener("open", () => {
    subscribe(true);
    attempt = 0;
    setConnection({ state: "live" });
    // Events during the disconnection were missed.
    if (wasLive) for (const listener of listeners) listener.resync?.();
    wasLive = true;
    watchSilence();
  });
  opened.addEventListener("message", (event: MessageEvent<unknown>) => {
    watchSilence();
    if (typeof event.data === "string") receive(event.data);
  });
  opened.addEventListener("close", () => {
    if (socket === opened) lost();
  });
}

function lost(): void {
  window.clearTimeout(silenceTimer);
  socket = null;
  attempt += 1;
  const delay = backoffMs(attempt, Math.random(), document.visibilityState === "visible");
  setConnection({
    state: attempt > OFFLINE_AFTER ? "offline" : "reconnecting",
    retryAtMs: Date.now() + delay,
    attempt,
  });
  window.clearTimeout(retryTimer);
  retryTimer = window.setTimeout(probe, delay);
}

function watchSilence(): void {
  window.clearTimeout(silenceTimer);
  silenceTimer = window.setTimeout(() => {
    send({ type: "Ping" });
    silenceTimer = window.setTimeout(() => socket?.close(), 10_000);
  }, SILENCE_MS);
}

function send(message: ClientMessage): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function receive(text: string): void {
  const parsed: unknown = JSON.parse(text);
  const messages = (Array.isArray(parsed) ? parsed : [parsed]) as readonly ServerMessage[];
  const traffic: TrafficEvent[] = [];
  const frames: FrameEvent[] = [];
  for (const message of messages) {
    switch (message.type) {
      case "Traffic":
        traffic.push(message.data);
        break;
      case "Resync":
        for (const listener of listeners) {
          if (message.data.channel === "frames") listener.framesMissed?.();
          else listener.resync?.();
        }
        break;
      case "Frame":
        frames.push(message.data);
        break;
      case "Changed":
        for (const listener of listeners) listener.changed?.(message.data.topic);
        break;
      case "Task":
        for (const listener of listeners) listener.task?.(message.data);
        break;
      case "Notice":
        for (const listener of listeners) listener.notice?.(message.data);
        break;
      case "Connected":
      case "InitialTraffic":
      case "Pong":
      case "Error":
        break;
    }
  }
  if (traffic.length > 0) for (const listener of listeners) listener.traffic?.(traffic);
  if (frames.length > 0) for (const listener of listeners) listener.frames?.(frames);
}

/**
 * Delay before the given attempt (1 is the first after a loss): doubles from 0.5 s to 15 s, or to 2 s while the page is
 * visible, less a jitter of up to a quarter, so that windows do not reconnect together. `random` is in [0, 1).
 */
export function backoffMs(attempt: number, random: number, isWatched = false): number {
  const base = Math.min(isWatched ? MAX_WATCHED_MS : MAX_MS, FIRST_MS * 2 ** Math.max(0, Math.min(16, attempt - 1)));
  return Math.round(base * (0.75 + 0.25 * random));
}
