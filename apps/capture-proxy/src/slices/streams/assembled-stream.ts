import type { AssembledChat, AssembledStream } from "@headworks/capture-contract";
import { ChatAssembler } from "@headworks/event-stream";
import type { ChatResponse } from "@headworks/event-stream";
import type { StoredFrame, StreamRow, StreamStore } from "#storage/streams/stream-store.ts";

const PAGE_FRAMES = 500;
/** Bounds of an assembled text: frames, total bytes and bytes of one frame. */
const MAX_FRAMES = 100_000;
const MAX_BYTES = 33_554_432;
const MAX_FRAME_BYTES = 1_048_576;
const MAX_TEXT_CHARACTERS = 1_048_576;
const MAX_NAMES = 100;

/** Concatenates the text of a stream's frames, reading them page by page. */
export async function assembleStream(
  store: Pick<StreamStore, "listFrames">,
  row: StreamRow,
  signal: AbortSignal,
): Promise<AssembledStream> {
  const assembly = new Assembly();
  for (let after = 0; !assembly.isFull;) {
    const { frames } = await store.listFrames(
      {
        streamId: row.id,
        direction: "receive",
        afterOrdinal: after,
        limit: PAGE_FRAMES,
        offset: 0,
        order: "asc",
        payloadBytes: MAX_FRAME_BYTES,
      },
      signal,
    );
    for (const frame of frames) assembly.add(frame);
    const last = frames.at(-1);
    if (last === undefined || frames.length < PAGE_FRAMES) break;
    after = last.ordinal;
  }
  return assembly.of(row);
}

class Assembly {
  readonly #chat = new ChatAssembler();
  readonly #texts: string[] = [];
  readonly #names = new Map<string, { name: string; count: number; bytes: number }>();
  #frames = 0;
  #bytes = 0;
  #characters = 0;
  #isCut = false;

  get isFull(): boolean {
    return this.#frames >= MAX_FRAMES || this.#bytes >= MAX_BYTES;
  }

  add(frame: StoredFrame): void {
    if (this.isFull) {
      this.#isCut = true;
      return;
    }
    this.#frames += 1;
    this.#bytes += frame.payload.length;
    const event = frame.attributes?.["event"] ?? (frame.type === "event" ? "message" : frame.type);
    this.#count(event, frame.sizeBytes);
    if (!CONTENT.has(frame.type) || frame.payload.length === 0) return;
    if (frame.payload.length < frame.sizeBytes) this.#isCut = true;
    const text = Buffer.from(frame.payload.buffer, frame.payload.byteOffset, frame.payload.byteLength).toString();
    this.#chat.add({ event, data: text });
    this.#addText(text);
  }

  of(row: StreamRow): AssembledStream {
    const response = this.#chat.response();
    const events = [...this.#names.values()].sort((left, right) => right.count - left.count);
    return {
      id: row.id,
      kind: row.kind,
      frames: this.#frames,
      text: this.#texts.join("\n"),
      truncated: this.#isCut || this.isFull || response?.isCut === true || row.framesNotStored > 0,
      events: events.slice(0, MAX_NAMES),
      chat: response === undefined ? null : shownChat(response),
    };
  }

  #addText(text: string): void {
    const room = MAX_TEXT_CHARACTERS - this.#characters;
    if (text.length > room) this.#isCut = true;
    if (room <= 0) return;
    this.#texts.push(text.slice(0, room));
    this.#characters += text.length + 1;
  }

  #count(event: string, bytes: number): void {
    const known = this.#names.get(event);
    if (known !== undefined) {
      known.count += 1;
      known.bytes += bytes;
    } else if (this.#names.size < 10 * MAX_NAMES) {
      this.#names.set(event, { name: event, count: 1, bytes });
    }
  }
}

/** Frames that carry text; binary and control frames do not. */
const CONTENT: ReadonlySet<StoredFrame["type"]> = new Set(["event", "item", "text", "continuation"]);

function shownChat(response: ChatResponse): AssembledChat {
  const { usage } = response;
  return {
    format: response.format,
    id: response.id,
    model: response.model,
    choices: response.choices.map((choice) => ({
      index: choice.index,
      text: choice.text,
      reasoning: choice.reasoning,
      refusal: choice.refusal,
      tool_calls: choice.toolCalls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments })),
      finish_reason: choice.finishReason,
    })),
    usage:
      usage === null
        ? null
        : {
            input_tokens: usage.inputTokens,
            output_tokens: usage.outputTokens,
            total_tokens: usage.totalTokens,
            cached_input_tokens: usage.cachedInputTokens,
            reasoning_tokens: usage.reasoningTokens,
          },
    error: response.error,
    complete: response.isComplete,
  };
}
