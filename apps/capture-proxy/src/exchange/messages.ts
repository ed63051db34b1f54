import type { Failure } from "./failure.ts";

/** Messages inside an open exchange. `send` is from the client. */
export type MessageDirection = "send" | "receive";

/** A frame that passed, or did not: what of it can be read. */
export interface TappedFrame {
  readonly direction: MessageDirection;
  /** RFC 6455, section 11.8. */
  readonly opcode: number;
  readonly isFinal: boolean;
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Uncompressed, as far as it was kept. */
  readonly payload: Buffer;
  readonly sizeBytes: number;
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  readonly mask: number | undefined;
  /** With the last frame of a message: how many frames it came in. */
  readonly fragments: number | undefined;
  /** What is wrong with its content, in a sentence. */
  readonly problem: string | undefined;
  readonly effect: "injected" | "modified" | "dropped" | undefined;
  /** The payload before it was modified. */
  readonly original: Buffer | undefined;
}

/** A whole message, or a control frame, that waits for a decision. */
export interface TappedMessage {
  readonly direction: MessageDirection;
  readonly opcode: number;
  readonly payload: Buffer;
}

export type MessageVerdict =
  | { readonly kind: "pass" }
  | { readonly kind: "replace"; readonly payload: Buffer }
  | { readonly kind: "drop" };

/** What a slice does with the messages of one exchange. Nothing of it may throw. */
export interface MessageHandler {
  /** Whether messages of a direction wait for {@link decide} from now on. Asked with each read: it must be cheap. */
  gates(direction: MessageDirection): boolean;
  /** Nothing of the message, nor of what comes behind it in its direction, is passed on meanwhile. */
  decide(message: TappedMessage): MessageVerdict | Promise<MessageVerdict>;
  /** Each frame, in its order. */
  frame(frame: TappedFrame): void;
  /** A direction broke the protocol: its bytes go on as they are, and no frame of it is read any more. */
  broken(direction: MessageDirection, reason: string): void;
  /** The connection is over. */
  closed(failure: Failure | undefined): void;
}

/** What a slice may do with an open connection on its own account. */
export interface MessageControl {
  /**
   * Sends a message in a direction as if the other side had, as soon as no other one is under way there. False: the
   * connection is closed or cannot be read, and nothing is sent.
   */
  inject(direction: MessageDirection, opcode: number, payload: Buffer): boolean;
  /** Says goodbye to both sides; nothing they send afterwards is passed on. False: the connection is closed already. */
  close(code: number, reason: string): boolean;
}
