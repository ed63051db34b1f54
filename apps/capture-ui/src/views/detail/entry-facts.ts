import type { TrafficEntry } from "@headworks/capture-contract";
import { reasonPhrase } from "@headworks/http-fields";

/** Colour of a method as a CSS value. */
export function methodColor(method: string): string {
  switch (method) {
    case "GET":
    case "HEAD":
    case "QUERY":
      return "var(--get)";
    case "POST":
      return "var(--post)";
    case "PUT":
    case "PATCH":
      return "var(--put)";
    case "DELETE":
      return "var(--delete)";
    default:
      return "var(--ink-3)";
  }
}

/** Colour of an entry's outcome as a CSS value; {@link statusText} is the text. */
export function statusColor(entry: Pick<TrafficEntry, "state" | "response">): string {
  if (entry.state === "failed") return "var(--server)";
  const status = entry.response?.status_code ?? 0;
  if (status === 0) return "var(--waiting)";
  if (status < 300) return "var(--ok)";
  if (status < 400) return "var(--redirect)";
  return status < 500 ? "var(--client)" : "var(--server)";
}

/** Status and reason, or the state of an entry without a response. */
export function statusText(entry: Pick<TrafficEntry, "state" | "response" | "is_passthrough" | "source">): string {
  const { response } = entry;
  if (response !== null) {
    const reason = response.status_message ?? reasonPhrase(response.status_code) ?? "";
    const text = `${response.status_code} ${reason}`.trim();
    // A response by Weir reports an earlier failure; a server's response was interrupted.
    if (entry.state === "failed") {
      return entry.source === "slice" ? `Failed, Weir responded with ${text}` : `${text}, then failed`;
    }
    return entry.state === "closed" ? `${text}, closed by the client` : text;
  }
  if (entry.state === "failed") return "Failed";
  if (entry.state === "pending") return entry.is_passthrough ? "Open" : "Waiting";
  return "No response";
}

export function entryFacts(entry: Pick<TrafficEntry, "request" | "response" | "tls">): string[] {
  const versions = new Set(
    [entry.request.http_version, entry.response?.http_version].filter((version) => version != null),
  );
  const tls = entry.tls?.client_version ?? entry.tls?.upstream_version;
  return [[...versions].join(" → "), tls ?? ""].filter((fact) => fact !== "");
}

/** Content types that may be streams. */
const STREAMED =
  /^(?:text\/event-stream|application\/(?:grpc|(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)|(?:geo\+)?json-seq|stream\+json|x-json-stream))/iu;

/** Whether an entry may have frames, so that they are worth requesting. */
export function mayStream({ request, response }: Pick<TrafficEntry, "request" | "response">): boolean {
  if (response === null) return false;
  if (response.status_code === 101 || /^wss?:/iu.test(request.url)) return true;
  const type = response.content_type?.trim() ?? "";
  return (
    STREAMED.test(type) || (type.startsWith("application/json") && request.path.includes(":streamGenerateContent"))
  );
}
