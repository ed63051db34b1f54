import { NOT_READ, type BodyText, type ConditionSet, type MatchSubject } from "@headworks/match-condition";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE, type Interceptor, type Verdict } from "#exchange/phases.ts";
import { type BodyTexts, ExchangeSubject } from "#rules/exchange-subject.ts";
import { type BodyLimits, type EditedExchange, MessageEdit, type Phase } from "#rules/message-edit.ts";
import type { CompiledRule, RewriteRules } from "./rewrites.compile.ts";

interface Memory {
  readonly matched: Set<string>;
  requestText: BodyText;
  /** The rule that responded itself; it must not replace its own response. */
  respondedBy: string | undefined;
}

export interface RewriteRun {
  request(exchange: EditedExchange, rules: RewriteRules): Verdict | Promise<Verdict>;
  response(exchange: EditedExchange, rules: RewriteRules): Verdict | Promise<Verdict>;
}

/** Applies the current rules to requests and responses; without rules it costs two comparisons. */
export class RewritesInterceptor implements Interceptor {
  readonly name = "rewrites";
  rules: RewriteRules;
  readonly #run: RewriteRun;

  constructor(run: RewriteRun, rules: RewriteRules) {
    this.#run = run;
    this.rules = rules;
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    return this.#run.request(exchange, this.rules);
  }

  onResponseHead(exchange: Exchange): Verdict | Promise<Verdict> {
    return this.#run.response(exchange, this.rules);
  }
}

export interface RewriteRunParts {
  readonly limits: () => BodyLimits;
  readonly onHit: (ruleId: string) => void;
}

export function createRewriteRun({ limits, onHit }: RewriteRunParts): RewriteRun {
  const memories = new WeakMap<EditedExchange, Memory>();
  const remember = (exchange: EditedExchange): Memory => {
    let memory = memories.get(exchange);
    if (memory === undefined) {
      memory = { matched: new Set(), requestText: undefined, respondedBy: undefined };
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
    const found = candidatesOf(rules, subjectsOf(exchange, phase));
    if (found.length === 0 && !keepsBody) return CONTINUE;
    const memory = memories.get(exchange);
    const edit = new MessageEdit("rewrite", exchange, phase, limits(), memory?.respondedBy);
    const pass = new Pass(edit, rules, found, memory, (rule) => matched(exchange, rule.id));
    const settled = pass.run();
    const end = (): Verdict | Promise<Verdict> => {
      if (edit.ownResponse !== undefined) remember(exchange).respondedBy = pass.lastRule?.id;
      if (keepsBody) remember(exchange).requestText = edit.body.text;
      const verdict = (): Verdict =>
        edit.ownResponse === undefined ? CONTINUE : { kind: "respond", response: edit.ownResponse };
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

/**
 * The subjects of conditions. A response belongs to the request as the client sent it and as it was forwarded: a rule
 * for a host still matches after another rule redirected the request.
 */
function subjectsOf(exchange: EditedExchange, phase: Phase, texts?: BodyTexts): readonly MatchSubject[] {
  const subject = new ExchangeSubject(exchange, phase, texts);
  const original = phase === "response" ? exchange.originalRequest?.message : undefined;
  return original === undefined ? [subject] : [subject, new ExchangeSubject(exchange, phase, texts, original)];
}

function candidatesOf(
  rules: ConditionSet<CompiledRule>,
  [subject, ...others]: readonly MatchSubject[],
): readonly CompiledRule[] {
  const found = subject === undefined ? [] : rules.candidates(subject);
  if (others.length === 0) return found;
  const all = new Set([...found, ...others.flatMap((other) => rules.candidates(other))]);
  return [...all].sort((one, other) => one.order - other.order);
}

/** Current bodies for conditions: the edited one, and in the response phase also the request's. */
class EditedTexts implements BodyTexts {
  readonly #edit: MessageEdit;
  readonly #memory: Memory | undefined;

  constructor(edit: MessageEdit, memory: Memory | undefined) {
    this.#edit = edit;
    this.#memory = memory;
  }

  get request(): BodyText {
    return this.#edit.phase === "request" ? this.response : this.#memory?.requestText;
  }

  get response(): BodyText {
    return this.#edit.body.isLoaded ? this.#edit.body.text : NOT_READ;
  }
}

/** One run through the rules; synchronous until a rule needs a body or a file. */
class Pass {
  lastRule: CompiledRule | undefined;
  readonly #edit: MessageEdit;
  readonly #rules: ConditionSet<CompiledRule>;
  readonly #onMatch: (rule: CompiledRule) => void;
  readonly #subjects: readonly MatchSubject[];
  /** The rules that may match the current message, in order, and the index of the next one. */
  #candidates: readonly CompiledRule[];
  #next = 0;

  constructor(
    edit: MessageEdit,
    rules: ConditionSet<CompiledRule>,
    candidates: readonly CompiledRule[],
    memory: Memory | undefined,
    onMatch: (rule: CompiledRule) => void,
  ) {
    this.#edit = edit;
    this.#rules = rules;
    this.#candidates = candidates;
    this.#onMatch = onMatch;
    this.#subjects = subjectsOf(edit.exchange, edit.phase, new EditedTexts(edit, memory));
  }

  run(): void | Promise<void> {
    for (; this.#next < this.#candidates.length; this.#next += 1) {
      const rule = this.#candidates[this.#next];
      if (rule === undefined) continue;
      const decision = this.#decide(rule);
      if (decision === "needs-body" && !this.#edit.body.isLoaded) {
        return this.#edit.body.load().then(() => this.run());
      }
      if (decision !== true) continue;
      const { method, scheme, host, port, path } = this.#edit.request;
      const isMoved = (): boolean => {
        const now = this.#edit.request;
        const isSameUrl = now.host === host && now.port === port && now.scheme === scheme && now.path === path;
        return !isSameUrl || now.method !== method;
      };
      const applied = this.#apply(rule);
      if (applied !== undefined) {
        return applied.then(() => (this.#passed(rule, isMoved()) ? this.run() : undefined));
      }
      if (!this.#passed(rule, isMoved())) return undefined;
      // Undone by the loop's increment.
      this.#next -= 1;
    }
    return undefined;
  }

  /** Records an applied rule; false when it responded, which ends the run. */
  #passed(rule: CompiledRule, isMoved: boolean): boolean {
    if (this.#edit.ownResponse !== undefined) return false;
    this.#next += 1;
    if (isMoved) {
      this.#candidates = candidatesOf(this.#rules, this.#subjects).filter(({ order }) => order > rule.order);
      this.#next = 0;
    }
    return true;
  }

  #decide(rule: CompiledRule): boolean | "needs-body" {
    for (const subject of this.#subjects) {
      const decision = rule.condition.decide(subject);
      if (decision !== false) return decision;
    }
    return false;
  }

  #apply(rule: CompiledRule): void | Promise<void> {
    this.lastRule = rule;
    this.#onMatch(rule);
    this.#edit.begin(rule.id, rule.name);
    return this.#actions(rule, 0);
  }

  #actions(rule: CompiledRule, start: number): void | Promise<void> {
    for (let at = start; at < rule.actions.length && this.#edit.ownResponse === undefined; at += 1) {
      const done = rule.actions[at]?.(this.#edit);
      if (done !== undefined) return done.then(() => this.#actions(rule, at + 1));
    }
    return undefined;
  }
}
