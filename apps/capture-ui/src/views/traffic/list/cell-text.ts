import type { TrafficSnapshot } from "@headworks/capture-contract";

const SHORT_TYPES: Readonly<Record<string, string>> = {
  document: "html",
  script: "js",
  stylesheet: "css",
  websocket: "ws",
  "event-stream": "sse",
  other: "—",
};

/** A short word for what came back: `json`, `webp`, `html`, `ws`. */
export function typeLabel(row: TrafficSnapshot): string {
  if (row.resource_type === "image" || row.resource_type === "media") {
    const subtype = /^[a-z]+\/(?:x-)?([a-z0-9-]+)/iu.exec(row.response_content_type ?? "")?.[1];
    return subtype?.toLowerCase() ?? row.resource_type;
  }
  return SHORT_TYPES[row.resource_type] ?? row.resource_type;
}

/** What a status means at a glance; decides colour and wording together. */
export type StatusTone = "ok" | "redirect" | "client" | "server" | "waiting" | "failed";

export function statusTone(row: Pick<TrafficSnapshot, "state" | "status_code">): StatusTone {
  if (row.state === "failed") return "failed";
  const status = row.status_code;
  if (status === null) return "waiting";
  if (status >= 500) return "server";
  if (status >= 400) return "client";
  return status >= 300 ? "redirect" : "ok";
}

/** Category of the colour bar, most telling first: failures, changes of data, then the type. */
export type BarTone =
  | "failed"
  | "server"
  | "client"
  | "change"
  | "data"
  | "page"
  | "code"
  | "media"
  | "stream"
  | "none";

export function barTone(row: TrafficSnapshot): BarTone {
  const tone = statusTone(row);
  if (tone === "failed" || tone === "server" || tone === "client") return tone;
  if (["websocket", "event-stream", "grpc", "tunnel"].includes(row.resource_type)) return "stream";
  if (["POST", "PUT", "PATCH", "DELETE"].includes(row.method)) return "change";
  switch (row.resource_type) {
    case "json":
    case "xml":
    case "form":
      return "data";
    case "document":
      return "page";
    case "script":
    case "stylesheet":
    case "wasm":
      return "code";
    case "image":
    case "font":
    case "media":
      return "media";
    case "text":
    case "binary":
    case "websocket":
    case "event-stream":
    case "grpc":
    case "tunnel":
    case "other":
      return "none";
  }
}

/** Says a row in one sentence for screen readers. */
export function rowSentence(row: TrafficSnapshot): string {
  const result =
    row.state === "failed"
      ? `failed${row.failure_code === null ? "" : `, ${row.failure_code}`}`
      : row.status_code === null
        ? "waiting"
        : String(row.status_code);
  return `${row.method} ${row.host}${row.path}, ${result}`;
}
