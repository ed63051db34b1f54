import type { RuleTrace } from "@headworks/capture-contract";
import type { HttpVersion, RequestMessage, ResponseMessage, Scheme } from "#exchange/exchange.ts";
import { KINDS } from "../write/entry-record.ts";
import { CheckedMembers } from "./checked-members.ts";
import type { ImportedEffect, ImportedMessage } from "./imported-entry.ts";
import { importedMessage, methodOf, statusOf, urlTarget } from "./imported-message.ts";
import type { FoundBody } from "./imported-message.ts";

const MAX_STEPS = 1000;
const VERSIONS: readonly HttpVersion[] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "SOCKS5"];

/** Reads `trace`, `original_request` and `original_response`. Throws `MemberError`. */
export function importedEffect(
  entry: CheckedMembers,
  findBody: (member: "original_request" | "original_response") => FoundBody | undefined,
): ImportedEffect | undefined {
  const trace = (entry.array("trace") ?? []).slice(0, MAX_STEPS).map(stepOf);
  const [request, response] = [entry.object("original_request"), entry.object("original_response")];
  if (trace.length === 0 && request === null && response === null) return undefined;
  const sent = request && importedMessage(request, findBody("original_request"));
  const received = response && importedMessage(response, findBody("original_response"));
  const bodies = [sent, received].map((message) => bytesOf(message));
  return {
    record: {
      trace,
      request: request && sent && requestOf(request, sent),
      response: response && received && responseOf(response, received),
      requestBytes: bodies[0]?.length ?? -1,
      responseBytes: bodies[1]?.length ?? -1,
    },
    bodies: bodies.flatMap((bytes) => bytes ?? []),
  };
}

function stepOf(value: unknown, index: number): RuleTrace {
  const step = new CheckedMembers(value, `trace[${index}]`);
  return {
    kind: step.oneOf("kind", KINDS) ?? step.refuse("kind", "is missing"),
    rule_id: step.optionalText("rule_id", 255) ?? "",
    rule_name: step.optionalText("rule_name", 1024) ?? "",
    phase: step.oneOf("phase", ["request", "response"]) ?? "request",
    changes: (step.array("changes") ?? []).filter((change) => typeof change === "string").slice(0, MAX_STEPS),
  };
}

function requestOf(members: CheckedMembers, { fields, trailers }: ImportedMessage): RequestMessage {
  const { scheme, host, port, path } = urlTarget(members);
  return {
    method: methodOf(members),
    scheme: scheme as Scheme,
    host,
    port,
    path,
    version: members.oneOf("http_version", VERSIONS) ?? "HTTP/1.1",
    fields: [...fields],
    trailers: trailers === null ? undefined : [...trailers],
  };
}

function responseOf(members: CheckedMembers, { fields, trailers }: ImportedMessage): ResponseMessage {
  return {
    status: statusOf(members),
    reason: members.optionalText("status_message", 1024) ?? "",
    version: members.oneOf("http_version", VERSIONS) ?? "HTTP/1.1",
    fields: [...fields],
    trailers: trailers === null ? undefined : [...trailers],
  };
}

function bytesOf(message: ImportedMessage | null): Uint8Array | undefined {
  return message?.body instanceof Uint8Array ? message.body : undefined;
}
