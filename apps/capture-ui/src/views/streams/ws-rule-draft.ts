import type { NewWsRule, WsRule } from "@headworks/capture-contract";

type ActionType = WsRule["action"]["type"];

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
