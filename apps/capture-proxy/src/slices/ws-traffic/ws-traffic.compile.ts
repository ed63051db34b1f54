import type { WsRuleAction, WsRuleMatch } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";
import { compilePattern, readReplacement } from "@headworks/linear-pattern";
import type { LinearPattern } from "@headworks/linear-pattern";
import { asksReadable, READABLE } from "@headworks/query-language";
import { OPCODES } from "@headworks/websocket";
import type { MessageDirection, TappedMessage } from "#exchange/messages.ts";
import type { StoredWsRule } from "./ws-rule.ts";

/** Maximum length of a replaced message, in UTF-16 units. */
const MAX_UNITS = 16_777_216;

export interface CompiledWsRule {
  readonly id: string;
  readonly name: string;
  concerns(connection: { readonly host: string; readonly url: string }): boolean;
  /** Undefined means both. */
  readonly direction: MessageDirection | undefined;
  /** `text` is set for text messages. */
  matches(message: TappedMessage, text: string | undefined): boolean;
  readonly action: CompiledWsAction;
}

export type CompiledWsAction =
  /** Undefined when nothing matches or the limits are exceeded. */
  | { readonly kind: "replace"; readonly replace: (text: string) => string | undefined }
  | { readonly kind: "drop" }
  | { readonly kind: "delay"; readonly delayMs: number }
  | { readonly kind: "pause" };

/** The enabled rules in order of application; a new array with every change. */
export function compileWsRules(rules: readonly StoredWsRule[]): readonly CompiledWsRule[] {
  return rules.filter(({ enabled }) => enabled).map((rule) => compileRule(rule));
}

function compileRule({ id, name, match, action }: StoredWsRule): CompiledWsRule {
  const hosts = match.host === undefined ? undefined : compileHostPatterns([match.host], "block-list");
  const url = match.url === undefined ? undefined : compilePattern(match.url);
  const readsUrl = match.url !== undefined && asksReadable(match.url, true);
  const text = match.text === undefined ? undefined : compilePattern(match.text);
  const opcode = match.message_type === undefined ? undefined : OPCODES[match.message_type];
  const needsText = text !== undefined || action.type === "replace";
  return {
    id,
    name,
    concerns: (connection) =>
      (hosts === undefined || hosts.find(connection.host) !== undefined) &&
      (url === undefined || url.test(connection.url) || (readsUrl && url.test(READABLE.url(connection.url)))),
    direction: match.direction,
    matches: (message, content) => {
      if (match.direction !== undefined && message.direction !== match.direction) return false;
      if (opcode !== undefined && message.opcode !== opcode) return false;
      if (needsText && content === undefined) return false;
      return text === undefined || (content !== undefined && text.test(content));
    },
    action: compileAction(action, match),
  };
}

function compileAction(action: WsRuleAction, match: WsRuleMatch): CompiledWsAction {
  switch (action.type) {
    case "replace":
      return { kind: "replace", replace: replacer(action.find ?? match.text, action.replacement) };
    case "drop":
      return { kind: "drop" };
    case "delay":
      return { kind: "delay", delayMs: action.delay_ms };
    case "pause":
      return { kind: "pause" };
  }
}

function replacer(find: string | undefined, replacement: string): (text: string) => string | undefined {
  if (find === undefined) return () => replacement;
  const pattern: LinearPattern = compilePattern(find);
  const read = readReplacement(replacement, pattern);
  if (!read.ok) return () => undefined;
  return (text) => {
    const replaced = pattern.replaceAll(text, read.replacement, MAX_UNITS);
    return replaced === "gave-up" || replaced.count === 0 ? undefined : replaced.text;
  };
}
