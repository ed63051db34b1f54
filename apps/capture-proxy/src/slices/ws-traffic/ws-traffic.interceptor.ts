import { randomUUID } from "node:crypto";
import type { WsPaused, WsRuleAction, WsRuleMatch } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";
import { fieldValue } from "@headworks/http1";
import { compilePattern, type LinearPattern, readReplacement } from "@headworks/linear-pattern";
import { asksReadable, READABLE } from "@headworks/query-language";
import { opcodeName, OPCODES, readClose } from "@headworks/websocket";
import { exchangeUrl, type ExchangeView } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type {
  MessageControl,
  MessageDirection,
  MessageHandler,
  MessageVerdict,
  TappedFrame,
  TappedMessage,
} from "#exchange/messages.ts";
import type { Interceptor } from "#exchange/phases.ts";
import type { StreamRecorder, StreamStore } from "#storage/streams/stream-store.ts";
import { shownPayload } from "./shown-message.ts";
import type { StoredWsRule } from "./ws-rule.ts";

/** The code of a connection without a close frame (RFC 6455, 7.1.5); never sent. */
const ABNORMAL_CLOSURE = 1006;
const PASS: MessageVerdict = { kind: "pass" };

/** Records the messages of one connection and applies the rules that match it. */
class ConnectionMessages implements MessageHandler {
  readonly #recorder: StreamRecorder;
  readonly #parts: MessagesParts;
  readonly #onClosed: () => void;
  readonly #connection: { readonly id: string; readonly url: string; readonly host: string };
  #known: readonly CompiledWsRule[] | undefined;
  #applying: Readonly<Record<MessageDirection, readonly CompiledWsRule[]>> = { send: [], receive: [] };
  readonly #stopDelays = new Set<() => void>();
  #hasCloseFrame = false;

  constructor(exchange: ExchangeView, recorder: StreamRecorder, parts: MessagesParts, onClosed: () => void) {
    this.#recorder = recorder;
    this.#parts = parts;
    this.#onClosed = onClosed;
    const { request, response } = exchange;
    this.#connection = { id: exchange.id, url: exchangeUrl(request), host: request.host };
    const subprotocol = fieldValue(response?.fields ?? [], "sec-websocket-protocol");
    const extensions = fieldValue(response?.fields ?? [], "sec-websocket-extensions");
    recorder.change({
      state: "open",
      ...(subprotocol !== undefined && { subprotocol }),
      ...(extensions !== undefined && { attributes: { extensions } }),
    });
  }

  gates(direction: MessageDirection): boolean {
    const rules = this.#parts.rules();
    if (rules !== this.#known) this.#learn(rules);
    return this.#applying[direction].length > 0;
  }

  decide(message: TappedMessage): MessageVerdict | Promise<MessageVerdict> {
    return this.#decideFrom(this.#applying[message.direction], 0, message, message.payload);
  }

  frame(frame: TappedFrame): void {
    const { fragments, problem, mask, effect, original } = frame;
    const hasAttributes = fragments !== undefined || problem !== undefined;
    this.#recorder.frame({
      direction: frame.direction,
      type: opcodeName(frame.opcode) ?? "binary",
      opcode: frame.opcode,
      isFinal: frame.isFinal,
      atMs: frame.atMs,
      payload: frame.payload,
      sizeBytes: frame.sizeBytes,
      wireBytes: frame.wireBytes,
      isCompressed: frame.isCompressed,
      ...(mask !== undefined && { mask }),
      ...(effect !== undefined && { effect }),
      ...(original !== undefined && { original }),
      ...(hasAttributes && {
        attributes: {
          ...(fragments !== undefined && { fragments: String(fragments) }),
          ...(problem !== undefined && { problem }),
        },
      }),
    });
    if (frame.opcode === OPCODES.close) this.#closing(frame);
  }

  broken(direction: MessageDirection, reason: string): void {
    const who = direction === "send" ? "The client" : "The server";
    this.#recorder.change({ attributes: { problem: `${who}: ${reason}` } });
  }

  closed(failure: Failure | undefined): void {
    for (const stop of this.#stopDelays) stop();
    this.#parts.paused.forget(this.#connection.id);
    if (failure !== undefined) this.#recorder.change({ attributes: { failure: failure.code } });
    if (!this.#hasCloseFrame) {
      const closeReason = failure?.message ?? "The connection ended without a close frame";
      this.#recorder.change({ closeCode: ABNORMAL_CLOSURE, closeReason });
    }
    this.#recorder.end();
    this.#onClosed();
  }

  #closing({ payload }: TappedFrame): void {
    this.#hasCloseFrame = true;
    const { code, reason } = readClose(payload);
    this.#recorder.change({
      state: "closing",
      ...(code !== undefined && { closeCode: code }),
      ...(reason !== "" && { closeReason: reason }),
    });
  }

  #learn(rules: readonly CompiledWsRule[]): void {
    this.#known = rules;
    const concerning = rules.filter((rule) => rule.concerns(this.#connection));
    this.#applying = {
      send: concerning.filter(({ direction }) => direction !== "receive"),
      receive: concerning.filter(({ direction }) => direction !== "send"),
    };
  }

  /** Rules apply in sequence; each sees the changes of those before. */
  #decideFrom(
    rules: readonly CompiledWsRule[],
    from: number,
    message: TappedMessage,
    original: Buffer,
  ): MessageVerdict | Promise<MessageVerdict> {
    let current = message;
    for (let index = from; index < rules.length; index += 1) {
      const rule = rules[index] as CompiledWsRule;
      const text = current.opcode === OPCODES.text ? current.payload.toString("utf8") : undefined;
      if (!rule.matches(current, text)) continue;
      const { action } = rule;
      if (action.kind === "replace") {
        const replaced = text === undefined ? undefined : action.replace(text);
        if (replaced === undefined || replaced === text) continue;
        current = { ...current, payload: Buffer.from(replaced) };
      }
      this.#parts.onHit(rule.id);
      if (action.kind === "drop") return { kind: "drop" };
      if (action.kind === "delay") return this.#delayed(action.delayMs, rules, index + 1, current, original);
      if (action.kind === "pause") return this.#paused(rule, current, original);
    }
    return current.payload === original ? PASS : { kind: "replace", payload: current.payload };
  }

  async #delayed(
    delayMs: number,
    rules: readonly CompiledWsRule[],
    from: number,
    message: TappedMessage,
    original: Buffer,
  ): Promise<MessageVerdict> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#parts.after(delayMs, resolve);
    this.#stopDelays.add(stop);
    await promise;
    this.#stopDelays.delete(stop);
    return await this.#decideFrom(rules, from, message, original);
  }

  async #paused(rule: CompiledWsRule, message: TappedMessage, original: Buffer): Promise<MessageVerdict> {
    const verdict = await this.#parts.paused.add(this.#connection, rule, message, this.#parts.nowMs());
    if (verdict.kind !== "pass" || message.payload === original) return verdict;
    return { kind: "replace", payload: message.payload };
  }
}

/** Taps WebSocket connections and tracks the open ones. */
export class WsTrafficInterceptor implements Interceptor {
  readonly name = "ws-traffic";
  readonly #streams: StreamStore;
  readonly #parts: MessagesParts;
  readonly #open = new Map<string, MessageControl>();

  constructor(streams: StreamStore, parts: MessagesParts) {
    this.#streams = streams;
    this.#parts = parts;
  }

  onMessages(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined {
    // Unrecorded connections are invisible in the API; only rules may apply to them.
    if (!exchange.isRecorded && this.#parts.rules().length === 0) return undefined;
    const recorder = this.#streams.open(exchange, "websocket");
    if (exchange.isRecorded) this.#open.set(exchange.id, control);
    return new ConnectionMessages(exchange, recorder, this.#parts, () => this.#open.delete(exchange.id));
  }

  control(id: string): MessageControl | undefined {
    return this.#open.get(id);
  }
}

export interface MessagesParts {
  /** The enabled rules; a new array after every change. */
  readonly rules: () => readonly CompiledWsRule[];
  readonly paused: PausedMessages;
  readonly onHit: (ruleId: string) => void;
  readonly after: (delayMs: number, callback: () => void) => () => void;
  readonly nowMs: () => number;
}

/** Beyond this number the oldest message continues. */
const MAX_PAUSED = 100;

interface Waiting {
  readonly shown: WsPaused;
  readonly opcode: number;
  readonly settle: (verdict: MessageVerdict) => void;
}

/** Messages paused for a manual decision, oldest first. */
export class PausedMessages {
  readonly #waiting = new Map<string, Waiting>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#waiting.size;
  }

  list(): WsPaused[] {
    return Array.from(this.#waiting.values(), ({ shown }) => shown);
  }

  opcodeOf(id: string): number | undefined {
    return this.#waiting.get(id)?.opcode;
  }

  async add(
    connection: { readonly id: string; readonly url: string },
    rule: { readonly id: string; readonly name: string },
    message: TappedMessage,
    nowMs: number,
  ): Promise<MessageVerdict> {
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size >= MAX_PAUSED) this.resume(oldest, { kind: "pass" });
    const id = randomUUID();
    const { promise, resolve } = Promise.withResolvers<MessageVerdict>();
    const name = opcodeName(message.opcode) ?? "binary";
    const shown: WsPaused = {
      id,
      connection_id: connection.id,
      url: connection.url,
      rule_id: rule.id,
      rule_name: rule.name,
      direction: message.direction,
      message_type: name === "continuation" ? "binary" : name,
      payload: shownPayload(message.payload, message.payload.length, name),
      paused_at: new Date(nowMs).toISOString(),
    };
    this.#waiting.set(id, { shown, opcode: message.opcode, settle: resolve });
    this.#onChange();
    return await promise;
  }

  /** False when the message is no longer paused. */
  resume(id: string, verdict: MessageVerdict): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return false;
    this.#waiting.delete(id);
    waiting.settle(verdict);
    this.#onChange();
    return true;
  }

  /** Drops the paused messages of a closed connection. */
  forget(connectionId: string): void {
    for (const [id, { shown }] of this.#waiting) {
      if (shown.connection_id === connectionId) this.resume(id, { kind: "drop" });
    }
  }
}

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

type CompiledWsAction =
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
