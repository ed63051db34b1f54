import type { NewWsRule, StreamDetail, StreamFrame, WsRule } from "@headworks/capture-contract";
import { literalPattern } from "../../rules/literal-pattern.ts";

export type ActionType = WsRule["action"]["type"];

/** A rule for messages as it stands in its form. */
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

/** Of a longer text the rule asks for the beginning. */
const MAX_TEXT_CHARACTERS = 200;
/** What a pattern may have, as the service takes it. */
const MAX_PATTERN_CHARACTERS = 1000;

/** The actions that a rule may take on messages like this one; none for what rules do not decide on. */
export function actionsFor({ kind, type, text }: Pick<StreamFrame, "kind" | "type" | "text">): readonly ActionType[] {
  if (kind !== "websocket" || (type !== "text" && type !== "binary")) return [];
  return type === "text" && text !== null ? ["pause", "replace", "drop", "delay"] : ["pause", "drop", "delay"];
}

/** A rule for messages like this one: of the same connection's address and direction, with the same text. */
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
    // What stands there is to be edited; a dollar sign would stand for something found.
    replacement: action === "replace" ? shown.replaceAll("$", "$$$$") : "",
  };
}

/** A field of one line takes no line ends. */
function onOneLine(pattern: string): string {
  return pattern.replaceAll("\r", "\\r").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** What the service is sent. */
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

/** The draft of a stored rule. */
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

/** What the service is sent about a rule that is there already: what the form does not show stays as it is. */
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

/** What a rule does and to which messages, in a sentence. */
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
