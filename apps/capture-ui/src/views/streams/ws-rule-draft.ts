import type { NewWsRule, StreamDetail, StreamFrame, WsRule } from "@headworks/capture-contract";
import { literalPattern } from "../../rules/condition-draft.ts";

export type ActionType = WsRule["action"]["type"];

export interface WsRuleDraft {
  readonly name: string;
  readonly host: string;
  readonly url: string;
  readonly direction: "any" | "send" | "receive";
  readonly text: string;
  readonly action: ActionType;
  readonly replacement: string;
  readonly delayMs: string;
}

export const NEW_RULE: WsRuleDraft = {
  name: "",
  host: "",
  url: "",
  direction: "any",
  text: "",
  action: "pause",
  replacement: "",
  delayMs: "1000",
};

/** A rule for a longer text matches its beginning. */
const MAX_TEXT_CHARACTERS = 200;
const MAX_PATTERN_CHARACTERS = 1000;

/** Rule actions available for a message; none for frames that rules do not apply to. */
export function actionsFor({ kind, type, text }: Pick<StreamFrame, "kind" | "type" | "text">): readonly ActionType[] {
  if (kind !== "websocket" || (type !== "text" && type !== "binary")) return [];
  return type === "text" && text !== null ? ["pause", "replace", "drop", "delay"] : ["pause", "drop", "delay"];
}

/** A rule for similar messages: same URL, direction and text. */
export function draftOfMessage(
  stream: Pick<StreamDetail, "host" | "url">,
  frame: Pick<StreamFrame, "direction" | "type" | "text" | "size" | "is_final">,
  action: ActionType,
): WsRuleDraft {
  const [address = ""] = stream.url.split("?", 1);
  const url = literalPattern("begins", address);
  const text = frame.type === "text" ? (frame.text ?? "") : "";
  const shown = Array.from(text.slice(0, 2 * MAX_TEXT_CHARACTERS))
    .slice(0, MAX_TEXT_CHARACTERS)
    .join("");
  const isWhole = frame.is_final && shown === text && new TextEncoder().encode(text).length === frame.size;
  const pattern = text === "" ? "" : onOneLine(literalPattern(isWhole ? "is" : "begins", shown));
  return {
    ...NEW_RULE,
    host: stream.host,
    url: url.length > MAX_PATTERN_CHARACTERS ? "" : url,
    direction: frame.direction,
    text: pattern,
    action,
    // The shown text is to be edited; a dollar sign would insert a match.
    replacement: action === "replace" ? shown.replaceAll("$", "$$$$") : "",
  };
}

/** Escapes line ends, since the field has one line. */
function onOneLine(pattern: string): string {
  return pattern.replaceAll("\r", "\\r").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

export function ruleOf(draft: WsRuleDraft): NewWsRule {
  const match = {
    ...(draft.host.trim() === "" ? {} : { host: draft.host.trim() }),
    ...(draft.url.trim() === "" ? {} : { url: draft.url.trim() }),
    ...(draft.direction === "any" ? {} : { direction: draft.direction }),
    ...(draft.text === "" ? {} : { text: draft.text }),
  };
  const name = draft.name.trim() === "" ? nameOf(draft) : draft.name.trim();
  return { name, match, action: actionOf(draft) };
}

export function draftOfWsRule({ name, match, action }: WsRule): WsRuleDraft {
  return {
    name,
    host: match.host ?? "",
    url: match.url ?? "",
    direction: match.direction ?? "any",
    text: match.text ?? "",
    action: action.type,
    replacement: action.type === "replace" ? action.replacement : "",
    delayMs: action.type === "delay" ? String(action.delay_ms) : NEW_RULE.delayMs,
  };
}

/** The body of an update: properties not in the form are unchanged. */
export function changedRule({ match, action, enabled }: WsRule, draft: WsRuleDraft): NewWsRule {
  const rule = ruleOf(draft);
  const type = match.message_type === undefined ? {} : { message_type: match.message_type };
  const find = action.type === "replace" && action.find !== undefined ? { find: action.find } : {};
  return {
    ...rule,
    match: { ...rule.match, ...type },
    action: rule.action.type === "replace" ? { ...rule.action, ...find } : rule.action,
    enabled,
  };
}

function actionOf({ action, replacement, delayMs }: WsRuleDraft): NewWsRule["action"] {
  switch (action) {
    case "replace":
      return { type: "replace", replacement };
    case "delay":
      return { type: "delay", delay_ms: Number(delayMs) };
    default:
      return { type: action };
  }
}

const VERBS: Readonly<Record<ActionType, string>> = {
  replace: "Replace",
  drop: "Drop",
  delay: "Delay",
  pause: "Pause",
};

function nameOf({ action, host, direction }: WsRuleDraft): string {
  const what = direction === "any" ? "messages" : direction === "send" ? "sent messages" : "received messages";
  return `${VERBS[action]} ${what}${host.trim() === "" ? "" : ` of ${host.trim()}`}`;
}

export function ruleSentence({ match, action }: Pick<WsRule, "match" | "action">): string {
  const conditions = [
    match.direction === "send" ? "sent" : match.direction === "receive" ? "received" : "",
    match.message_type ?? "",
    match.host === undefined ? "" : `host ${match.host}`,
    match.url === undefined ? "" : `URL ${match.url}`,
    match.text === undefined ? "" : `text ${match.text}`,
  ].filter((part) => part !== "");
  const what = conditions.length === 0 ? "every message" : conditions.join(", ");
  switch (action.type) {
    case "replace":
      return `${what}: replace with ${JSON.stringify(action.replacement)}`;
    case "delay":
      return `${what}: delay by ${action.delay_ms} ms`;
    default:
      return `${what}: ${action.type}`;
  }
}
