import type { Failure } from "./failure.ts";

/** Direction of a message inside an open exchange; `send` is from the client. */
export type MessageDirection = "send" | "receive";

/** A frame that was forwarded or dropped. */
export interface TappedFrame {
  readonly direction: MessageDirection;
  /** RFC 6455, section 11.8. */
  readonly opcode: number;
  readonly isFinal: boolean;
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Uncompressed, possibly cut to the limit. */
  readonly payload: Buffer;
  readonly sizeBytes: number;
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  readonly mask: number | undefined;
  /** Number of frames of the message; set on its last frame. */
  readonly fragments: number | undefined;
  /** A sentence about invalid content. */
  readonly problem: string | undefined;
  readonly effect: "injected" | "modified" | "dropped" | undefined;
  /** The payload before it was modified. */
  readonly original: Buffer | undefined;
}

/** A whole message or control frame awaiting a decision. */
export interface TappedMessage {
  readonly direction: MessageDirection;
  readonly opcode: number;
  readonly payload: Buffer;
}

export type MessageVerdict =
  | { readonly kind: "pass" }
  | { readonly kind: "replace"; readonly payload: Buffer }
  | { readonly kind: "drop" };

/** Decides about the messages of one exchange. Its methods must not throw. */
export interface MessageFilter {
  /** Whether messages of this direction are held for {@link decide}. Called on every read, so it must be cheap. */
  gates(direction: MessageDirection): boolean;
  /** The message and everything behind it in its direction are held until the verdict. */
  decide(message: TappedMessage): MessageVerdict | Promise<MessageVerdict>;
}

/** A slice's handler for the messages of one exchange. Its methods must not throw. */
export interface MessageHandler extends MessageFilter {
  /** Called for each frame in order. */
  frame(frame: TappedFrame): void;
  /** The direction violated the protocol: its bytes are forwarded unchanged and no longer parsed. */
  broken(direction: MessageDirection, reason: string): void;
  closed(failure: Failure | undefined): void;
}

/** Control of an open connection by a slice. */
export interface MessageControl {
  /** Queues a message until that direction is between messages. False: closed or unreadable. */
  inject(direction: MessageDirection, opcode: number, payload: Buffer): boolean;
  /** Sends close frames to both sides and discards further input. False: already closed. */
  close(code: number, reason: string): boolean;
}
