import type { TrafficSnapshot } from "@headworks/capture-contract";

const SHORT_TYPES: Readonly<Record<string, string>> = {
  document: "html",
  script: "js",
  stylesheet: "css",
  websocket: "ws",
  "event-stream": "sse",
  other: "—",
};

/** Kinds of traffic other than plain exchanges, marked by an icon. */
export type Channel = "websocket" | "event-stream" | "grpc" | "tunnel" | "socks";

export function channelOf(
  row: Pick<TrafficSnapshot, "resource_type" | "is_passthrough" | "http_version">,
): Channel | null {
  if (row.is_passthrough) return row.http_version === "SOCKS5" ? "socks" : "tunnel";
  switch (row.resource_type) {
    case "websocket":
    case "event-stream":
    case "grpc":
    case "tunnel":
      return row.resource_type;
    default:
      return null;
  }
}

/** The protocol, as far as known: `HTTP/2`, `gRPC, HTTP/2`, `WebSocket`, `SOCKS5`, `CONNECT`. */
export function protocolLabel(row: TrafficSnapshot): string {
  const version = row.http_version ?? "—";
  switch (channelOf(row)) {
    case "socks":
      return "SOCKS5";
    case "tunnel":
      return "CONNECT";
    case "websocket":
      return version === "HTTP/2" ? "WebSocket, HTTP/2" : "WebSocket";
    case "grpc":
      return `gRPC, ${version}`;
    case "event-stream":
    case null:
      return version;
  }
}

/** Port of a tunnel, which has no path: `port 8443`. Null for other entries. */
export function tunnelPort(row: Pick<TrafficSnapshot, "is_passthrough" | "url">): string | null {
  if (!row.is_passthrough || !URL.canParse(row.url)) return null;
  const { port, protocol } = new URL(row.url);
  return `port ${port === "" ? (protocol === "http:" ? 80 : 443) : port}`;
}

/** `:8080` for a non-default port; empty otherwise, and for tunnels, which show it in full. */
export function portSuffix(row: Pick<TrafficSnapshot, "is_passthrough" | "url">): string {
  if (row.is_passthrough || !URL.canParse(row.url)) return "";
  const { port } = new URL(row.url);
  return port === "" ? "" : `:${port}`;
}

/** Whether a stream is still open after its response started. */
export function isOpen(row: TrafficSnapshot): boolean {
  return row.state === "pending" && row.status_code !== null && channelOf(row) !== null;
}

/** A short label of the content type: `json`, `webp`, `html`, `ws`. */
export function typeLabel(row: TrafficSnapshot): string {
  if (channelOf(row) === "socks") return "socks";
  if (row.resource_type === "image" || row.resource_type === "media") {
    const subtype = /^[a-z]+\/(?:x-)?([a-z0-9-]+)/iu.exec(row.response_content_type ?? "")?.[1];
    return subtype?.toLowerCase() ?? row.resource_type;
  }
  return SHORT_TYPES[row.resource_type] ?? row.resource_type;
}

/** Category of a status, for colour and text. */
export type StatusTone = "ok" | "redirect" | "client" | "server" | "waiting" | "failed";

export function statusTone(row: Pick<TrafficSnapshot, "state" | "status_code">): StatusTone {
  if (row.state === "failed") return "failed";
  const status = row.status_code;
  if (status === null) return "waiting";
  if (status >= 500) return "server";
  if (status >= 400) return "client";
  return status >= 300 ? "redirect" : "ok";
}

/** Category of the colour bar, in precedence order: failures, modifications, then the type. */
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
  if (channelOf(row) !== null) return "stream";
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

/** A row as one sentence for screen readers. */
export function rowSentence(row: TrafficSnapshot): string {
  const result =
    row.state === "failed"
      ? `failed${row.failure_code === null ? "" : `, ${row.failure_code}`}`
      : row.status_code === null
        ? "waiting"
        : `${row.status_code}${row.state === "closed" ? ", closed by the client" : ""}`;
  const port = tunnelPort(row);
  const what =
    port === null
      ? `${row.method} ${row.host}${portSuffix(row)}${row.path}`
      : `${typeLabel(row)} to ${row.host}, ${port}`;
  return `${what}, ${result}${isOpen(row) ? ", open" : ""}`;
}
