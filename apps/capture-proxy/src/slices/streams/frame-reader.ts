import { EventReader, JsonStreamReader } from "@headworks/event-stream";
import type { EventBlock, JsonItem } from "@headworks/event-stream";
import type { FrameRecord } from "#storage/streams/stream-store.ts";
import type { StreamForm } from "./stream-form.ts";

/** A frame but for what the one who read its bytes knows. */
export type ReadFrame = Omit<FrameRecord, "direction" | "opcode" | "isFinal" | "atMs" | "isCompressed">;

/** Cuts the decoded bytes of an answer into frames. */
export interface FrameReader {
  read(piece: Buffer): void;
  /** The answer ended; what came of a last frame is told. */
  end(): void;
}

/** Attributes stand in lists; what is longer is cut. */
const ATTRIBUTE_CHARACTERS = 1000;

/** A reader of that form, which keeps no more than `maxBytes` of each frame. */
export function frameReader(form: StreamForm, maxBytes: number, onFrame: (frame: ReadFrame) => void): FrameReader {
  // Zero is allowed as a limit of bodies: then sizes are told, and no bytes.
  const keptBytes = Math.max(1, maxBytes);
  return form.kind === "sse"
    ? new EventReader({ maxEventBytes: keptBytes, onBlock: (block) => onFrame(frameOfBlock(block, maxBytes)) })
    : new JsonStreamReader({
        form: form.form,
        maxItemBytes: keptBytes,
        onItem: (item) => onFrame(frameOfItem(item, maxBytes)),
      });
}

function frameOfBlock(block: EventBlock, maxBytes: number): ReadFrame {
  const attributes: Record<string, string> = {};
  if (block.event !== "message") attributes["event"] = shortened(block.event);
  if (block.id !== undefined) attributes["id"] = shortened(block.id);
  if (block.retryMs !== undefined) attributes["retry"] = String(block.retryMs);
  if (block.comment !== undefined) attributes["comment"] = shortened(block.comment);
  if (!block.isComplete) attributes["incomplete"] = "true";
  const payload = Buffer.from(block.data);
  return {
    type: "event",
    payload: payload.length <= maxBytes ? payload : payload.subarray(0, maxBytes),
    // What replaces wrong UTF-8 is longer than what came.
    sizeBytes: block.isCut ? Math.max(block.sizeBytes, payload.length) : payload.length,
    wireBytes: block.wireBytes,
    ...withAttributes(attributes),
  };
}

function frameOfItem(item: JsonItem, maxBytes: number): ReadFrame {
  return {
    type: "item",
    payload: item.bytes.length <= maxBytes ? item.bytes : item.bytes.subarray(0, maxBytes),
    sizeBytes: item.sizeBytes,
    wireBytes: item.wireBytes,
    ...withAttributes(item.isComplete ? {} : { incomplete: "true" }),
  };
}

function withAttributes(attributes: Record<string, string>): Pick<FrameRecord, "attributes"> {
  return Object.keys(attributes).length === 0 ? {} : { attributes };
}

function shortened(text: string): string {
  return text.length <= ATTRIBUTE_CHARACTERS ? text : `${text.slice(0, ATTRIBUTE_CHARACTERS)}…`;
}
