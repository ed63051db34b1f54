import { nullable, oneOf, strictObject, taggedBy, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import type { TrafficSnapshot } from "./message.ts";

/** A client's filter; all given parts must match. */
export const SubscribeFilter = strictObject({
  search: Type.Optional(nullable(Type.String({ maxLength: 4096 }))),
  method: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
  status_code: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
  q: Type.Optional(nullable(Type.String({ maxLength: 4096 }))),
});
export type SubscribeFilter = Static<typeof SubscribeFilter>;

/** Optional channels beyond traffic. */
export const CHANNELS = ["changes", "tasks", "frames"] as const;

const clientMessageKinds = [
  strictObject({ type: oneOf(["Ping"]) }),
  strictObject({
    type: oneOf(["Subscribe"]),
    data: Type.Optional(
      strictObject({
        filter: Type.Optional(nullable(SubscribeFilter)),
        channels: Type.Optional(Type.Array(oneOf([...CHANNELS]), { maxItems: 8 })),
      }),
    ),
  }),
  strictObject({ type: oneOf(["Unsubscribe"]) }),
  strictObject({
    type: oneOf(["GetInitialTraffic"]),
    data: Type.Optional(strictObject({ limit: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 1000 }))) })),
  }),
];

/** Messages a client may send on `/ws`. The bare text `ping` is tolerated too. */
export const ClientMessage = taggedBy<ClientMessage>("type", clientMessageKinds);
export type ClientMessage = Static<(typeof clientMessageKinds)[number]>;

/** A frame of a stream, sent within 50 ms to subscribers of the channel `frames`. */
export interface FrameEvent {
  /** The id of the stream, which is that of its traffic entry. */
  readonly stream_id: string;
  /** Number in its stream, from 1 on. */
  readonly ordinal: number;
  readonly kind: "websocket" | "sse" | "json" | "grpc";
  /** `send` is from the client. */
  readonly direction: "send" | "receive";
  readonly type: string;
  /** Bytes of the payload, uncompressed. */
  readonly size: number;
  /** The first 1,000 characters; null for what is not text. */
  readonly text: string | null;
  readonly timestamp: string;
  readonly effect?: "injected" | "modified" | "dropped";
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Progress of something that takes long. */
export interface TaskProgress {
  readonly id: string;
  readonly kind: "snapshot" | "import-har" | "import-session" | "import-mocks" | "replay-batch";
  readonly bytes: number;
  readonly total_bytes: number | null;
  readonly entries: number;
  /** Present if it is known from the start. */
  readonly total_entries?: number;
  readonly done: boolean;
  readonly error: string | null;
}

/** Something that people should know of and did not ask for; sent to every client, whatever it subscribed to. */
export type Notice =
  | {
      /** A paused exchange continued without a decision. */
      readonly code: "pause-ended";
      /** For people: `POST http://shop.example/orders continued unmodified after 60 s without a decision`. */
      readonly message: string;
      readonly paused_id: string;
      readonly entry_id: string;
      readonly rule_id: string;
      readonly reason: "timeout" | "too-many" | "ended";
    }
  | {
      /** The oldest entries make room for new ones, for the first time since the service started or the limit changed. */
      readonly code: "entries-removed";
      readonly message: string;
    };

/** A change outside the traffic list, so that other windows can fetch it again. */
export type ChangeTopic =
  | "config"
  | "capture"
  | "autosave"
  | "sessions"
  | "blocklist"
  | "breakpoints"
  | "focus"
  | "grpc"
  | "mirror"
  | "mocks"
  | "replay"
  | "rewrites"
  | "scripts"
  | "throttle"
  | "ws-traffic"
  | "cert"
  | "storage"
  | "logs";

/**
 * Messages the service sends. A frame holds one message, or a JSON array of messages sent in one flush when the
 * client asked for `/ws?batch=1`; without it every message is a frame of its own, as the specification shows. The
 * parts of a {@link SubscribeFilter} may stand in the address too (`/ws?q=status:5xx`): such a filter holds from the first
 * event on, while one sent with `Subscribe` holds from when it arrives.
 */
export type ServerMessage =
  | { readonly type: "Connected"; readonly data: { readonly client_id: string } }
  | { readonly type: "InitialTraffic"; readonly data: readonly TrafficSnapshot[] }
  | { readonly type: "Traffic"; readonly data: TrafficEvent }
  | { readonly type: "Resync"; readonly data: { readonly missed: number; readonly channel?: "frames" } }
  | { readonly type: "Pong" }
  | { readonly type: "Error"; readonly data: { readonly message: string } }
  | { readonly type: "Changed"; readonly data: { readonly topic: ChangeTopic } }
  | { readonly type: "Task"; readonly data: TaskProgress }
  | { readonly type: "Notice"; readonly data: Notice }
  | { readonly type: "Frame"; readonly data: FrameEvent };

export type TrafficEvent =
  | { readonly type: "Added"; readonly data: TrafficSnapshot }
  | { readonly type: "Updated"; readonly data: TrafficSnapshot }
  | { readonly type: "Deleted"; readonly data: readonly string[] }
  | { readonly type: "Cleared" }
  | { readonly type: "CountUpdate"; readonly data: number };
