import { anthropic } from "./anthropic.ts";
import { OpenResponse } from "./chat-response.ts";
import type { ChatResponse } from "./chat-response.ts";
import type { ChatEvent, ChatReader, ReadEvent } from "./chat-reader.ts";
import { google } from "./google.ts";
import { asName, asObject, asText, parsedObject } from "./json-facts.ts";
import { ollama } from "./ollama.ts";
import { openAiChat } from "./openai-chat.ts";
import { openAiResponses } from "./openai-responses.ts";

const READERS: readonly ChatReader[] = [openAiResponses, anthropic, openAiChat, google, ollama];
/** A stream that is no chat after so many events is not looked into further. */
const MAX_EVENTS_UNKNOWN = 32;

/**
 * Puts a chat-completion stream together from its events, however far it got. The form is recognised by the first event
 * that can be of one form only; events that are unknown, or no JSON, change nothing. Memory is bounded, and no input
 * makes it throw.
 */
export class ChatAssembler {
  readonly #response = new OpenResponse();
  #reader: ChatReader | undefined;
  #eventsUnknown = 0;
  #error: string | null = null;

  /** The stream is none of a chat, and no more events are needed to say so. */
  get isHopeless(): boolean {
    return this.#reader === undefined && this.#eventsUnknown >= MAX_EVENTS_UNKNOWN;
  }

  add(event: ChatEvent): void {
    if (this.isHopeless) return;
    const read: ReadEvent = { ...event, facts: parsedObject(event.data) };
    this.#error ??= errorOf(read);
    this.#reader ??= READERS.find((reader) => reader.recognises(read));
    if (this.#reader === undefined) this.#eventsUnknown += 1;
    else this.#reader.read(read, this.#response);
  }

  /** What the stream said so far; undefined when it is not known to be one of a chat. */
  response(): ChatResponse | undefined {
    if (this.#reader === undefined) return undefined;
    const response = this.#response.close(this.#reader.format);
    return response.error === null ? { ...response, error: this.#error } : response;
  }
}

/** All providers put an object with a message there, or say it flatly in an event of that type. */
function errorOf({ event, facts }: ReadEvent): string | null {
  const error = asObject(facts?.["error"]);
  const flat = asName(facts?.["error"]);
  if (error !== undefined) return asName(error["message"]) ?? asName(error["type"]) ?? "An error without a message";
  if (flat !== undefined) return flat;
  const isError = event === "error" || asText(facts?.["type"]) === "error";
  return isError ? (asName(facts?.["message"]) ?? null) : null;
}
