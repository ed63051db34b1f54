import type { StreamFrame, StreamSummary } from "@headworks/capture-contract";
import type { ListedFrame } from "./load-rows.ts";

export const KIND_LABELS: Readonly<Record<StreamSummary["kind"], string>> = {
  websocket: "WS",
  sse: "SSE",
  json: "JSON",
  grpc: "gRPC",
};

export function frameLine(
  frame: Pick<ListedFrame, "text" | "base64" | "size" | "attributes" | "type" | "decodedLine">,
): string {
  if (frame.decodedLine !== undefined) return frame.decodedLine;
  const { comment, retry } = frame.attributes;
  if (frame.type === "close") return oneLine(frame.text ?? "");
  if (frame.size === 0 || (frame.text === null && frame.base64 === null)) {
    if (comment !== undefined) return `: ${oneLine(comment)}`;
    if (retry !== undefined) return `reconnect after ${retry} ms`;
    return "";
  }
  return frame.text === null ? hexLine(frame.base64 ?? "") : oneLine(frame.text);
}

/** The frame's type: the event name if it has one. */
export function frameKind(frame: Pick<StreamFrame, "type" | "attributes" | "size">): string {
  const { event, comment } = frame.attributes;
  if (frame.type === "event") return event ?? (frame.size === 0 && comment !== undefined ? "comment" : "message");
  return frame.type;
}

/** Whether it ended before it was complete. */
export function isIncomplete(frame: Pick<StreamFrame, "attributes">): boolean {
  return frame.attributes["incomplete"] === "true";
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, " ").trim();
}

const SHOWN_BYTES = 24;

function hexLine(base64: string): string {
  const bytes = atob(base64.slice(0, SHOWN_BYTES * 2));
  return Array.from(bytes.slice(0, SHOWN_BYTES), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
}

/** Seconds and milliseconds since the previous frame or the stream's start: `+0.250`. */
export function sinceStart(timestamp: string, createdAt: string): string {
  const seconds = Math.max(0, Date.parse(timestamp) - Date.parse(createdAt)) / 1000;
  if (!Number.isFinite(seconds)) return "—";
  return seconds < 1000 ? `+${seconds.toFixed(3)}` : `+${Math.round(seconds)}`;
}
