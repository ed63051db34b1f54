import type { BreakpointDecision, PausedItem } from "@headworks/capture-contract";
import {
  bodyDraft,
  type BodyDraft,
  draftBytes,
  headerDraft,
  type HeaderDraft,
  headerDrafts,
  headersList,
  markedBody,
} from "../../rules/message-draft.ts";

/** A paused message in its editor; texts as typed. */
export interface PausedDraft {
  readonly side: "request" | "response";
  readonly method: string;
  readonly url: string;
  readonly status: string;
  readonly reason: string;
  readonly headers: readonly HeaderDraft[];
  readonly body: BodyDraft;
  /** False: the body could not be shown, and is forwarded unmodified. */
  readonly hasBody: boolean;
}

const SHOWN_BODY = new Set(["complete", "coded", "none"]);

/** Reason why the body of a paused message cannot be edited, or null. */
export function bodyObstacle(item: PausedItem): string | null {
  const message = item.direction === "request" ? item.request : item.response;
  switch (message?.body_state) {
    case "too_large":
      return "The body exceeds the breakpoint limit and is forwarded unmodified.";
    case "receiving":
      return "The body has not been received yet.";
    case "gone":
      return "The request has already completed.";
    case "left_out":
      return "The body was not stored and is forwarded unmodified.";
    default:
      return null;
  }
}

export function draftOfPaused(item: PausedItem): PausedDraft {
  const { request, response } = item;
  const message = item.direction === "request" || response === null ? request : response;
  return {
    side: item.direction === "request" || response === null ? "request" : "response",
    method: request.method,
    url: request.url,
    status: String(response?.status_code ?? 200),
    reason: response?.status_message ?? "",
    headers: headerDrafts(message.headers_list),
    body: bodyDraft(message.body, message.body_encoding),
    hasBody: SHOWN_BODY.has(message.body_state),
  };
}

/** A draft as an HTTP/1.1 message, for the clipboard. */
export function draftText(draft: PausedDraft): string {
  const first =
    draft.side === "request" ? `${draft.method} ${draft.url} HTTP/1.1` : `HTTP/1.1 ${draft.status} ${draft.reason}`;
  const fields = headersList(draft.headers).map(([name, value]) => `${name}: ${value}`);
  return [first.trimEnd(), ...fields, "", markedBody(draft.body)].join("\n");
}

/** Draft of a response that replaces the request to the server. */
export function responseDraft(item: PausedItem): PausedDraft {
  return {
    side: "response",
    method: item.request.method,
    url: item.request.url,
    status: "200",
    reason: "",
    headers: [headerDraft("Content-Type", "application/json")],
    body: { encoding: "utf8", text: "{}" },
    hasBody: true,
  };
}

/** Whether two drafts describe the same message. */
export function isSameDraft(left: PausedDraft, right: PausedDraft): boolean {
  const facts = (draft: PausedDraft): string =>
    JSON.stringify([
      draft.method,
      draft.url,
      draft.status,
      draft.reason,
      headersList(draft.headers),
      draft.body.encoding,
      draft.body.text,
    ]);
  return facts(left) === facts(right);
}

/** The validation error of a draft, or null. */
export function draftProblem(draft: PausedDraft): string | null {
  if (draft.side === "response" && !/^[2-9]\d\d$/u.test(draft.status.trim())) {
    return "Enter a three-digit status, 200 or higher";
  }
  if (draft.side === "request" && draft.method.trim() === "" && draft.url !== "") return "Enter a method";
  if (draft.side === "request" && !URL.canParse(draft.url)) return "The URL must be absolute";
  return draftBytes(draft.body) === null ? "The body is not valid base64" : null;
}

function bodyPart(body: BodyDraft): { readonly body: string; readonly body_encoding?: "utf8" } {
  return body.encoding === "utf8"
    ? { body: body.text, body_encoding: "utf8" }
    : // Without an encoding the prefix marks base64.
      { body: markedBody(body) };
}

/** The decision that forwards the draft; contains only changed parts. */
export function modifyDecision(item: PausedItem, before: PausedDraft, draft: PausedDraft): BreakpointDecision {
  const message = item.direction === "request" ? item.request : item.response;
  const isBodyChanged =
    SHOWN_BODY.has(message?.body_state ?? "") &&
    (before.body.text !== draft.body.text || before.body.encoding !== draft.body.encoding);
  const isHeadChanged = JSON.stringify(headersList(before.headers)) !== JSON.stringify(headersList(draft.headers));
  const shared = {
    ...(isHeadChanged ? { headers_list: headersList(draft.headers) } : {}),
    ...(isBodyChanged ? bodyPart(draft.body) : {}),
  };
  if (draft.side === "request") {
    return {
      action: "modify",
      modifications: {
        ...(draft.method === before.method ? {} : { method: draft.method.trim() }),
        ...(draft.url === before.url ? {} : { url: draft.url.trim() }),
        ...shared,
      },
    };
  }
  return {
    action: "modify",
    modifications: {
      ...(draft.status === before.status ? {} : { status_code: Number(draft.status) }),
      ...(draft.reason === before.reason ? {} : { status_message: draft.reason }),
      ...shared,
    },
  };
}

export function respondDecision(draft: PausedDraft): BreakpointDecision {
  return {
    action: "respond",
    status_code: Number(draft.status),
    ...(draft.reason === "" ? {} : { status_message: draft.reason }),
    headers_list: headersList(draft.headers),
    ...bodyPart(draft.body),
  };
}

/** Seconds until a paused message continues automatically; null without a timeout. */
export function secondsLeft(deadline: string | null, nowMs: number): number | null {
  if (deadline === null) return null;
  return Math.max(0, Math.ceil((Date.parse(deadline) - nowMs) / 1000));
}
