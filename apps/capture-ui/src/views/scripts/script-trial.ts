import type { ScriptHook, ScriptTest, TestedRequest, TestedResponse } from "@headworks/capture-contract";
import {
  bodyDraft,
  type BodyDraft,
  draftBytes,
  type HeaderDraft,
  headerDraft,
  headersRecord,
  markedBody,
} from "../../rules/message-draft.ts";
import { bodyLines, headLines } from "../../rules/message-text.ts";

/** Input of a test as typed. */
export interface TrialDraft {
  /** Null: the first hook that the source declares. */
  readonly hook: ScriptHook | null;
  readonly input: "entry" | "sample";
  readonly entryId: string | null;
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: readonly HeaderDraft[];
  readonly requestBody: BodyDraft;
  readonly status: string;
  readonly responseHeaders: readonly HeaderDraft[];
  readonly responseBody: BodyDraft;
  readonly direction: "send" | "receive";
  readonly payload: BodyDraft;
  readonly service: string;
  readonly rpc: string;
}

export function newTrial(): TrialDraft {
  return {
    hook: null,
    input: "sample",
    entryId: null,
    method: "GET",
    url: "https://api.example.com/orders?page=1",
    requestHeaders: [headerDraft("Accept", "application/json")],
    requestBody: { encoding: "utf8", text: "" },
    status: "200",
    responseHeaders: [headerDraft("Content-Type", "application/json")],
    responseBody: { encoding: "utf8", text: '{"id":1,"status":"open"}' },
    direction: "send",
    payload: { encoding: "utf8", text: "hello" },
    service: "",
    rpc: "",
  };
}

/** The parts of an exchange that a hook gets. */
export function partsOf(hook: ScriptHook): {
  readonly request: boolean;
  readonly response: boolean;
  readonly message: "websocket" | "grpc" | null;
} {
  switch (hook) {
    case "on_request":
      return { request: true, response: false, message: null };
    case "on_response":
    case "on_traffic_store":
      return { request: true, response: true, message: null };
    case "on_websocket_message":
      return { request: true, response: false, message: "websocket" };
    case "on_grpc_message":
      return { request: true, response: false, message: "grpc" };
    case "on_session_start":
    case "on_session_end":
      return { request: false, response: false, message: null };
  }
}

/** The body of a test, or its problem. */
export function trialOf(
  draft: TrialDraft,
  source: string,
  hook: ScriptHook,
): { readonly ok: true; readonly test: ScriptTest } | { readonly ok: false; readonly message: string } {
  const parts = partsOf(hook);
  const base = { source, hook, ...(parts.message === null ? {} : { message: messageOf(draft, parts.message) }) };
  if (draft.payload.encoding === "base64" && parts.message !== null && draftBytes(draft.payload) === null) {
    return { ok: false, message: "The message is not valid base64" };
  }
  if (!parts.request) return { ok: true, test: base };
  if (draft.input === "entry") {
    if (draft.entryId === null) return { ok: false, message: "Choose a captured request" };
    return { ok: true, test: { ...base, entry_id: draft.entryId } };
  }
  if (!URL.canParse(draft.url.trim())) return { ok: false, message: "Enter an absolute URL" };
  if (draftBytes(draft.requestBody) === null) return { ok: false, message: "The request body is not valid base64" };
  const request = {
    method: draft.method.trim() === "" ? "GET" : draft.method.trim(),
    url: draft.url.trim(),
    headers: headersRecord(draft.requestHeaders),
    body: draft.requestBody.text === "" ? null : markedBody(draft.requestBody),
  };
  if (!parts.response) return { ok: true, test: { ...base, request } };
  const status = Number(draft.status);
  if (!Number.isInteger(status) || status < 100 || status > 599) {
    return { ok: false, message: "The status must be a number from 100 to 599" };
  }
  if (draftBytes(draft.responseBody) === null) return { ok: false, message: "The response body is not valid base64" };
  const response = {
    status_code: status,
    headers: headersRecord(draft.responseHeaders),
    body: draft.responseBody.text === "" ? null : markedBody(draft.responseBody),
  };
  return { ok: true, test: { ...base, request, response } };
}

function messageOf(draft: TrialDraft, kind: "websocket" | "grpc"): NonNullable<ScriptTest["message"]> {
  return {
    direction: draft.direction,
    payload: markedBody(draft.payload),
    ...(kind === "websocket"
      ? { message_type: draft.payload.encoding === "base64" ? ("binary" as const) : ("text" as const) }
      : {
          ...(draft.service.trim() === "" ? {} : { service: draft.service.trim() }),
          ...(draft.rpc.trim() === "" ? {} : { method: draft.rpc.trim() }),
        }),
  };
}

/** The lines of a message for comparison: first line, headers, body. */
export function testedLines(message: TestedRequest | TestedResponse | null): readonly string[] {
  if (message === null) return [];
  const body = bodyDraft(message.body, message.body?.startsWith("base64:") === true ? "base64" : "utf8");
  const shown = {
    ...message,
    headers_list: message.headers_list.map(([name = "", value = ""]) => [name, value] as const),
    body: message.body === null ? null : body.text,
    body_encoding: body.encoding,
  };
  const lines = bodyLines(shown);
  return lines.length === 0 ? headLines(shown) : [...headLines(shown), "", ...lines];
}
