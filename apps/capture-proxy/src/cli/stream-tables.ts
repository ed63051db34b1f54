import type { StreamFrame, StreamSummary } from "@headworks/capture-contract";
import { sizeText, timeText } from "./present-values.ts";
import type { WideColumn } from "./table.ts";

const streams: readonly WideColumn<StreamSummary>[] = [
  { title: "Kind", text: (row) => row.kind },
  {
    title: "State",
    text: (row) => row.state,
    style: (row) => (row.state === "open" ? "green" : undefined),
  },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Sent", text: (row) => String(row.frames_sent), align: "right" },
  { title: "Received", text: (row) => String(row.frames_received), align: "right" },
  { title: "Size", text: (row) => sizeText(row.bytes_sent + row.bytes_received), align: "right", fromColumns: 110 },
  { title: "Started", text: (row) => timeText(row.created_at), fromColumns: 140 },
  { title: "Id", text: (row) => row.id },
];

const frames: readonly WideColumn<StreamFrame>[] = [
  { title: "#", text: (row) => String(row.ordinal), align: "right" },
  { title: "", text: (row) => (row.direction === "send" ? "↑" : "↓") },
  { title: "Type", text: kindOf, shrinksTo: 8 },
  { title: "Size", text: (row) => sizeText(row.size), align: "right" },
  { title: "Effect", text: (row) => row.effect ?? "", fromColumns: 120 },
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "Content", text: (row) => contentOf(row), shrinksTo: 20 },
];

/** The type of an event where it has one; without a name it is a message, as browsers have it. */
function kindOf({ type, size, attributes }: StreamFrame): string {
  if (type !== "event") return type;
  return attributes["event"] ?? (size === 0 && attributes["comment"] !== undefined ? "comment" : "message");
}

/** Text on one line; bytes as they begin. */
function contentOf({ text, base64, size, attributes }: StreamFrame): string {
  if (size === 0 && attributes["comment"] !== undefined) return `: ${attributes["comment"]}`;
  return (text ?? `base64:${base64 ?? ""}`).replaceAll(/\s+/gu, " ").trim();
}

/** Tables of streams and their frames, by the name of the schema of their rows. */
export const STREAM_TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  StreamSummary: streams,
  StreamFrame: frames,
};
