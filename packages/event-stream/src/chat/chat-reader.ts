import type { ChatFormat, OpenResponse } from "./chat-response.ts";
import type { Facts } from "./json-facts.ts";

/** One event of a stream, as far as it matters for a chat. */
export interface ChatEvent {
  /** Type of a server-sent event; empty for JSON without events. */
  readonly event: string;
  readonly data: string;
}

/** An event whose data was looked into. */
export interface ReadEvent extends ChatEvent {
  /** The data, where it is an object in JSON. */
  readonly facts: Facts | undefined;
}

/** Understands one way of streaming a chat. */
export interface ChatReader {
  readonly format: ChatFormat;
  /** Whether an event can only be of this form. */
  recognises(event: ReadEvent): boolean;
  /** Adds what an event says; what it does not know, it leaves. */
  read(event: ReadEvent, response: OpenResponse): void;
}
