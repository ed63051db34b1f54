import { decodeContent, decodeText } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import {
  compileCondition,
  compileConditionSet,
  type CompiledCondition,
  type ConditionSet,
  NOT_READ,
} from "@headworks/match-condition";
import type { Content, Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Verdict } from "#exchange/phases.ts";
import { type BodyTexts, ExchangeSubject } from "#rules/exchange-subject.ts";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";
import type { PauseAllSwitch, PausedContent, PausedExchanges, PausingRule } from "./paused-exchanges.ts";

interface CompiledBreakpoint extends PausingRule {
  readonly condition: CompiledCondition;
}

/** Enabled rules by phase, in evaluation order; immutable, replaced on every change. */
export interface BreakpointRules {
  readonly atRequest: ConditionSet<CompiledBreakpoint>;
  readonly atResponse: ConditionSet<CompiledBreakpoint>;
  /** A rule for responses matches on the request body, so request bodies must be kept. */
  readonly keepsRequestBodies: boolean;
  /** Stored rules that cannot be compiled and therefore pause nothing. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** Compiles rules, oldest first: the lowest priority wins, the oldest among equals. */
export function compileBreakpoints(rules: readonly StoredBreakpoint[]): BreakpointRules {
  const issues: { rule: string; issue: string }[] = [];
  const compiled: (CompiledBreakpoint & { readonly direction: StoredBreakpoint["direction"] })[] = [];
  for (const rule of rules.filter(({ enabled }) => enabled).toSorted((a, b) => a.priority - b.priority)) {
    const { id, name, timeoutSecs, direction } = rule;
    try {
      compiled.push({ id, name, timeoutSecs, direction, condition: compileCondition(rule.condition) });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      issues.push({ rule: id, issue: error.message });
    }
  }
  const atRequest = compiled.filter(({ direction }) => direction !== "response");
  const atResponse = compiled.filter(
    ({ direction, condition }) => direction !== "request" && condition.atResponse.possible,
  );
  return {
    atRequest: compileConditionSet(atRequest, ({ condition }) => condition),
    atResponse: compileConditionSet(atResponse, ({ condition }) => condition),
    keepsRequestBodies: atResponse.some(({ condition }) => condition.atResponse.request),
    issues,
  };
}

interface BreakpointsInterceptorParts {
  /** The rules in force; replaced on every change. */
  readonly active: { readonly rules: BreakpointRules };
  readonly pauseAll: PauseAllSwitch;
  readonly paused: PausedExchanges;
  /** Bodies larger than this, encoded or decoded, are not held: the message pauses with its head alone. */
  readonly bodyLimitBytes: () => number;
  readonly onHit: (ruleId: string) => void;
}

/** Pauses exchanges until a decision. Paused exchanges are listed before their body has arrived. */
export class BreakpointsInterceptor implements Interceptor {
  readonly name = "breakpoints";
  readonly #parts: BreakpointsInterceptorParts;
  /** Request bodies as text, kept for rules at the response. */
  readonly #requestTexts = new WeakMap<Exchange, string>();

  constructor(parts: BreakpointsInterceptorParts) {
    this.#parts = parts;
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const { active, pauseAll } = this.#parts;
    const { atRequest, keepsRequestBodies } = active.rules;
    if (atRequest.size === 0 && !keepsRequestBodies && pauseAll.ruleFor("request") === undefined) return CONTINUE;
    if (keepsRequestBodies) return this.#requestWithBody(exchange, atRequest);
    const found = this.#find(exchange, "request", atRequest, { request: NOT_READ, response: undefined });
    if (found === "needs-body") return this.#requestWithBody(exchange, atRequest);
    return found === undefined ? CONTINUE : this.#pause(exchange, "request", found);
  }

  onResponseHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const { active, pauseAll, paused } = this.#parts;
    const { atResponse } = active.rules;
    if (atResponse.size === 0 && pauseAll.ruleFor("response") === undefined) return CONTINUE;
    // The response was written at a breakpoint, so it needs no second pause.
    if (paused.isAnsweredByHand(exchange)) return CONTINUE;
    const request = this.#requestTexts.get(exchange);
    const found = this.#find(exchange, "response", atResponse, { request, response: NOT_READ });
    if (found === "needs-body") return this.#responseWithBody(exchange, atResponse);
    return found === undefined ? CONTINUE : this.#pause(exchange, "response", found);
  }

  async #requestWithBody(exchange: Exchange, rules: ConditionSet<CompiledBreakpoint>): Promise<Verdict> {
    const limitBytes = this.#parts.bodyLimitBytes();
    const content = await exchange.requestContent(limitBytes);
    if (content.kind === "gone") return CONTINUE;
    const request = await textOfContent(content, exchange.request.fields, limitBytes);
    if (request !== undefined && this.#parts.active.rules.keepsRequestBodies) this.#requestTexts.set(exchange, request);
    const found = this.#find(exchange, "request", rules, { request, response: undefined });
    return found === undefined || found === "needs-body" ? CONTINUE : await this.#pause(exchange, "request", found);
  }

  async #responseWithBody(exchange: Exchange, rules: ConditionSet<CompiledBreakpoint>): Promise<Verdict> {
    const limitBytes = this.#parts.bodyLimitBytes();
    const content: Content = isStream(exchange) ? { kind: "too-large" } : await exchange.responseContent(limitBytes);
    if (content.kind === "gone") return CONTINUE;
    const response = await textOfContent(content, exchange.response?.fields ?? [], limitBytes);
    const request = this.#requestTexts.get(exchange);
    const found = this.#find(exchange, "response", rules, { request, response });
    return found === undefined || found === "needs-body" ? CONTINUE : await this.#pause(exchange, "response", found);
  }

  #find(
    exchange: Exchange,
    side: "request" | "response",
    rules: ConditionSet<CompiledBreakpoint>,
    texts: BodyTexts,
  ): PausingRule | "needs-body" | undefined {
    const subject = new ExchangeSubject(exchange, side, texts);
    for (const rule of rules.candidates(subject)) {
      const decision = rule.condition.decide(subject);
      // Lower rules may decide only after this one is known not to match.
      if (decision === "needs-body") return decision;
      if (decision) return rule;
    }
    return this.#parts.pauseAll.ruleFor(side);
  }

  #pause(exchange: Exchange, side: "request" | "response", rule: PausingRule): Promise<Verdict> {
    const { paused, onHit } = this.#parts;
    onHit(rule.id);
    return paused.pause(exchange, side, rule, this.#content(exchange, side));
  }

  #content(exchange: Exchange, side: "request" | "response"): Promise<PausedContent> {
    const limitBytes = this.#parts.bodyLimitBytes();
    if (side === "request") return exchange.requestContent(limitBytes);
    return isStream(exchange) ? Promise.resolve({ kind: "stream" }) : exchange.responseContent(limitBytes);
  }
}

/** Endless streams: waiting for their end would block forever. */
function isStream({ response }: Exchange): boolean {
  const type = fieldValue(response?.fields ?? [], "content-type") ?? "";
  return /^\s*(?:text\/event-stream|multipart\/x-mixed-replace|application\/grpc\b)/i.test(type);
}

/** A body as text with as many content codings removed as possible; undefined for an incomplete or too large body. */
async function textOfContent(
  content: Content,
  fields: readonly string[],
  maxBytes: number,
): Promise<string | undefined> {
  if (content.kind !== "complete" || content.bytes.length === 0) return undefined;
  const list = [...fields];
  const { bytes, stop } = await decodeContent(content.bytes, fieldValues(list, "content-encoding"), { maxBytes });
  if (stop === "limit") return undefined;
  return decodeText(bytes, fieldValue(list, "content-type")).text;
}
