import { isNumeric, readJson } from "@headworks/json";

/** An object as it came from a peer: nothing in it can be relied on. */
export type Facts = Readonly<Record<string, unknown>>;

/** The object that a text holds; undefined for anything else. */
export function parsedObject(text: string): Facts | undefined {
  try {
    return asObject(readJson(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): Facts | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value)
    ? (value as Facts)
    : undefined;
}

/** The objects of a list; anything else is left out. */
export function asObjects(value: unknown): readonly Facts[] {
  if (!Array.isArray(value)) return [];
  const items: readonly unknown[] = value;
  return items.flatMap((item): readonly Facts[] => {
    const facts = asObject(item);
    return facts === undefined ? [] : [facts];
  });
}

export function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A text that says something. */
export function asName(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A number that can count something. */
export function asCount(value: unknown): number | undefined {
  const count = isNumeric(value) ? Number(value) : undefined;
  return count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

/** Whose way of streaming answers it is; others speak the same ways. */
export type ChatFormat = "openai-chat" | "openai-responses" | "anthropic" | "google" | "ollama";

export interface ToolCall {
  readonly id: string | null;
  readonly name: string;
  /** As it was joined from its pieces: JSON, if the model wrote it well and the stream got to its end. */
  readonly arguments: string;
}

/** One of the answers that were asked for; mostly there is one. */
export interface ChatChoice {
  readonly index: number;
  readonly text: string;
  /** The reasoning, as far as the provider reveals it. */
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCall[];
  /** In the provider's words; null: none came. */
  readonly finishReason: string | null;
}

/** Tokens as the provider counted them; null where it did not say. */
export interface ChatUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly totalTokens: number | null;
  readonly cachedInputTokens: number | null;
  readonly reasoningTokens: number | null;
}

/** The assembled response of a chat-completion stream. */
export interface ChatResponse {
  readonly format: ChatFormat;
  readonly id: string | null;
  readonly model: string | null;
  readonly choices: readonly ChatChoice[];
  readonly usage: ChatUsage | null;
  /** The provider's error message. */
  readonly error: string | null;
  /** False: the stream did not say that it was complete. */
  readonly isComplete: boolean;
  /** Something was left out, because it was more than is kept. */
  readonly isCut: boolean;
}

/** Enough for any response; limits the memory of a hostile stream. */
const MAX_CHARACTERS = 8_388_608;
const MAX_CHOICES = 128;
const MAX_TOOL_CALLS = 1024;

/** Text that grows by pieces, within a budget that all texts of an answer share. */
class GrowingText {
  #pieces: string[] = [];
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  add(piece: string | undefined): void {
    if (piece === undefined || piece === "") return;
    const taken = this.#budget.take(piece);
    if (taken !== "") this.#pieces.push(taken);
  }

  /** A later word that counts instead of the pieces, unless they say as much. */
  settle(whole: string | undefined): void {
    if (whole === undefined || whole === this.text) return;
    this.#budget.give(this.text.length);
    this.#pieces = [];
    this.add(whole);
  }

  get text(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join("")];
    return this.#pieces[0] ?? "";
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }
}

class Budget {
  isExceeded = false;
  #left = MAX_CHARACTERS;

  take(piece: string): string {
    const taken = piece.slice(0, this.#left);
    if (taken.length < piece.length) this.isExceeded = true;
    this.#left -= taken.length;
    return taken;
  }

  give(characters: number): void {
    this.#left += characters;
  }
}

/** A tool call while it is put together. */
class OpenToolCall {
  id: string | null = null;
  name = "";
  readonly arguments: GrowingText;

  constructor(budget: Budget) {
    this.arguments = new GrowingText(budget);
  }
}

/** An answer of a chat while it is put together. */
export class OpenChoice {
  readonly index: number;
  readonly text: GrowingText;
  readonly reasoning: GrowingText;
  readonly refusal: GrowingText;
  readonly toolCalls = new Map<string, OpenToolCall>();
  finishReason: string | null = null;
  readonly #budget: Budget;

  constructor(index: number, budget: Budget) {
    this.index = index;
    this.#budget = budget;
    this.text = new GrowingText(budget);
    this.reasoning = new GrowingText(budget);
    this.refusal = new GrowingText(budget);
  }

  /** The call of that key, begun if there is none; undefined when there are too many. */
  toolCall(key: string | number): OpenToolCall | undefined {
    const known = this.toolCalls.get(String(key));
    if (known !== undefined) return known;
    if (this.toolCalls.size >= MAX_TOOL_CALLS) {
      this.#budget.isExceeded = true;
      return undefined;
    }
    const made = new OpenToolCall(this.#budget);
    this.toolCalls.set(String(key), made);
    return made;
  }

  close(): ChatChoice {
    return {
      index: this.index,
      text: this.text.text,
      reasoning: this.reasoning.text,
      refusal: this.refusal.text,
      toolCalls: [...this.toolCalls.values()].map(({ id, name, arguments: joined }) => ({
        id,
        name,
        arguments: joined.text,
      })),
      finishReason: this.finishReason,
    };
  }
}

/** State of a response while its stream is read. */
export class OpenResponse {
  id: string | null = null;
  model: string | null = null;
  error: string | null = null;
  isComplete = false;
  readonly #choices = new Map<number, OpenChoice>();
  readonly #budget = new Budget();
  #usage: ChatUsage | null = null;

  /** The choice of that number, begun if there is none; undefined when there are too many. */
  choice(index: number): OpenChoice | undefined {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    if (this.#choices.size >= MAX_CHOICES) {
      this.#budget.isExceeded = true;
      return undefined;
    }
    const made = new OpenChoice(index, this.#budget);
    this.#choices.set(index, made);
    return made;
  }

  /** Counts that are said replace those said before. */
  count(said: { readonly [Key in keyof ChatUsage]?: number | undefined }): void {
    const before = this.#usage;
    const merged = {
      inputTokens: said.inputTokens ?? before?.inputTokens ?? null,
      outputTokens: said.outputTokens ?? before?.outputTokens ?? null,
      totalTokens: said.totalTokens ?? before?.totalTokens ?? null,
      cachedInputTokens: said.cachedInputTokens ?? before?.cachedInputTokens ?? null,
      reasoningTokens: said.reasoningTokens ?? before?.reasoningTokens ?? null,
    };
    if (Object.values(merged).some((count) => count !== null)) this.#usage = merged;
  }

  close(format: ChatFormat): ChatResponse {
    const choices = [...this.#choices.values()].map((choice) => choice.close());
    return {
      format,
      id: this.id,
      model: this.model,
      choices: choices.sort((left, right) => left.index - right.index),
      usage: this.#usage,
      error: this.error,
      isComplete: this.isComplete,
      isCut: this.#budget.isExceeded,
    };
  }
}

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
