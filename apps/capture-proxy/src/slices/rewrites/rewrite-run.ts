// Tested by ../../../test/rewrites-live.test.ts
import type { BodyText, ConditionSet, MatchSubject } from "@headworks/match-condition";
import { CONTINUE } from "#exchange/phases.ts";
import type { Verdict } from "#exchange/phases.ts";
import { ConditionSubject } from "./condition-subject.ts";
import { MessageEdit } from "./message-edit.ts";
import type { BodyLimits, EditedExchange, Phase } from "./message-edit.ts";
import type { CompiledRule, RewriteRules } from "./rewrites.compile.ts";

/** What is remembered of an exchange between its request and its answer. */
interface Memory {
  readonly matched: Set<string>;
  requestText: BodyText;
  /** A rule answered the request itself; its answer is not to be replaced by the same rule again. */
  answeredBy: string | undefined;
}

/** Runs rules over exchanges. */
export interface RewriteRun {
  request(exchange: EditedExchange, rules: RewriteRules): Verdict | Promise<Verdict>;
  response(exchange: EditedExchange, rules: RewriteRules): Verdict | Promise<Verdict>;
}

export interface RewriteRunParts {
  readonly limits: () => BodyLimits;
  /** Once for each exchange that a rule matches. */
  readonly onHit: (ruleId: string) => void;
}

export function createRewriteRun({ limits, onHit }: RewriteRunParts): RewriteRun {
  const memories = new WeakMap<EditedExchange, Memory>();
  const remember = (exchange: EditedExchange): Memory => {
    let memory = memories.get(exchange);
    if (memory === undefined) {
      memory = { matched: new Set(), requestText: undefined, answeredBy: undefined };
      memories.set(exchange, memory);
    }
    return memory;
  };
  const matched = (exchange: EditedExchange, ruleId: string): void => {
    const memory = remember(exchange);
    if (memory.matched.has(ruleId)) return;
    memory.matched.add(ruleId);
    onHit(ruleId);
  };

  const run = (
    exchange: EditedExchange,
    phase: Phase,
    rules: ConditionSet<CompiledRule>,
    keepsBody: boolean,
  ): Verdict | Promise<Verdict> => {
    const memory = memories.get(exchange);
    const edit = new MessageEdit(exchange, phase, limits(), memory?.answeredBy);
    const pass = new Pass(edit, rules, memory, (rule) => matched(exchange, rule.id));
    const settled = pass.run();
    const end = (): Verdict | Promise<Verdict> => {
      if (edit.answer !== undefined) remember(exchange).answeredBy = pass.lastRule?.id;
      if (keepsBody) remember(exchange).requestText = edit.body.text;
      const verdict = (): Verdict =>
        edit.answer === undefined ? CONTINUE : { kind: "respond", response: edit.answer };
      const finished = edit.finish();
      return finished === undefined ? verdict() : finished.then(verdict);
    };
    const endAfterBody = (): Verdict | Promise<Verdict> =>
      keepsBody && !edit.body.isLoaded ? edit.body.load().then(end) : end();
    return settled === undefined ? endAfterBody() : settled.then(endAfterBody);
  };

  return {
    request: (exchange, rules) =>
      rules.request.size === 0 && !rules.keepsRequestBody
        ? CONTINUE
        : run(exchange, "request", rules.request, rules.keepsRequestBody),
    response: (exchange, rules) =>
      rules.response.size === 0 ? CONTINUE : run(exchange, "response", rules.response, false),
  };
}

/** One way through the rules: stays synchronous until a rule needs a body or a file. */
class Pass {
  lastRule: CompiledRule | undefined;
  readonly #edit: MessageEdit;
  readonly #rules: ConditionSet<CompiledRule>;
  readonly #onMatch: (rule: CompiledRule) => void;
  readonly #subject: MatchSubject;
  /**
   * An answer belongs to its request as the client sent it and to the request as it was forwarded: a rule for a host
   * holds although another rule sent the request elsewhere.
   */
  readonly #originalSubject: MatchSubject | undefined;
  /** Rules that may hold for the message as it is, in order, and the one that is asked next. */
  #candidates: readonly CompiledRule[] = [];
  #next = 0;

  constructor(
    edit: MessageEdit,
    rules: ConditionSet<CompiledRule>,
    memory: Memory | undefined,
    onMatch: (rule: CompiledRule) => void,
  ) {
    this.#edit = edit;
    this.#rules = rules;
    this.#onMatch = onMatch;
    this.#subject = new ConditionSubject(edit, () => edit.request, memory?.requestText);
    const original = edit.phase === "response" ? edit.exchange.originalRequest?.message : undefined;
    if (original !== undefined) this.#originalSubject = new ConditionSubject(edit, () => original, memory?.requestText);
  }

  run(): void | Promise<void> {
    this.#candidates = this.#find(0);
    return this.#onward();
  }

  #find(fromOrder: number): readonly CompiledRule[] {
    const found = this.#rules.candidates(this.#subject);
    const original = this.#originalSubject && this.#rules.candidates(this.#originalSubject);
    const all =
      original === undefined
        ? found
        : [...new Set([...found, ...original])].sort((one, other) => one.order - other.order);
    return fromOrder === 0 ? all : all.filter(({ order }) => order >= fromOrder);
  }

  #onward(): void | Promise<void> {
    for (; this.#next < this.#candidates.length; this.#next += 1) {
      const rule = this.#candidates[this.#next];
      if (rule === undefined) continue;
      const decision = this.#decide(rule);
      if (decision === "needs-body" && !this.#edit.body.isLoaded) {
        return this.#edit.body.load().then(() => this.#onward());
      }
      if (decision !== true) continue;
      const { method, scheme, host, port, path } = this.#edit.request;
      const isMoved = (): boolean => {
        const now = this.#edit.request;
        const isSamePlace = now.host === host && now.port === port && now.scheme === scheme && now.path === path;
        return !isSamePlace || now.method !== method;
      };
      const applied = this.#apply(rule);
      if (applied !== undefined) {
        return applied.then(() => (this.#passed(rule, isMoved()) ? this.#onward() : undefined));
      }
      if (!this.#passed(rule, isMoved())) return undefined;
      // The loop counts on by itself.
      this.#next -= 1;
    }
    return undefined;
  }

  /** A rule was applied. False: it gave an answer, no other rule is asked. */
  #passed(rule: CompiledRule, isMoved: boolean): boolean {
    if (this.#edit.answer !== undefined) return false;
    this.#next += 1;
    // Other rules may hold for what the request is now.
    if (isMoved) {
      this.#candidates = this.#find(rule.order + 1);
      this.#next = 0;
    }
    return true;
  }

  #decide(rule: CompiledRule): boolean | "needs-body" {
    const decision = rule.condition.decide(this.#subject);
    if (decision !== false || this.#originalSubject === undefined) return decision;
    return rule.condition.decide(this.#originalSubject);
  }

  #apply(rule: CompiledRule): void | Promise<void> {
    this.lastRule = rule;
    this.#onMatch(rule);
    this.#edit.begin(rule.id, rule.name);
    return this.#actions(rule, 0);
  }

  #actions(rule: CompiledRule, start: number): void | Promise<void> {
    for (let at = start; at < rule.actions.length && this.#edit.answer === undefined; at += 1) {
      const done = rule.actions[at]?.(this.#edit);
      if (done !== undefined) return done.then(() => this.#actions(rule, at + 1));
    }
    return undefined;
  }
}
