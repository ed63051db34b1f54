import {
  compileCondition,
  compileConditionSet,
  type CompiledCondition,
  type ConditionSet,
} from "@headworks/match-condition";
import type { MappedFiles } from "./mapped-files.ts";
import type { StoredRewrite } from "./rewrite-rule.ts";
import { compileAction } from "./rewrite-actions.ts";
import type { Apply } from "./rewrite-actions.ts";
import type { TextThread } from "./text-thread.ts";

/** A rule for one phase. */
export interface CompiledRule {
  readonly id: string;
  readonly name: string;
  readonly condition: CompiledCondition;
  readonly actions: readonly Apply[];
  /** Its place among the rules of its phase. */
  readonly order: number;
}

/** The enabled rules in the order in which they run; immutable, replaced whole on every change. */
export interface RewriteRules {
  readonly request: ConditionSet<CompiledRule>;
  readonly response: ConditionSet<CompiledRule>;
  /** A rule for answers asks for the request's body, which has passed by then. */
  readonly keepsRequestBody: boolean;
  /** Stored rules that cannot be read: they change nothing, which must not stay unnoticed. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** What does not depend on other rules; undefined where the rule has nothing to do in a phase. */
interface CompiledParts {
  readonly condition: CompiledCondition;
  readonly request: readonly Apply[] | undefined;
  readonly response: readonly Apply[] | undefined;
}

/** Compiles rules; those that stay the same from one time to the next are compiled once. */
export interface RewriteCompiler {
  /** Rules are given oldest first; the disabled ones are left out. */
  compile(rules: readonly StoredRewrite[]): RewriteRules;
}

export function createRewriteCompiler(files: MappedFiles, thread: TextThread): RewriteCompiler {
  let known = new Map<string, { readonly rule: StoredRewrite; readonly parts: CompiledParts }>();
  return {
    compile: (rules) => {
      const kept: typeof known = new Map();
      const compiled = joined(
        rules.filter(({ enabled }) => enabled),
        (rule) => {
          const before = known.get(rule.id);
          const parts = before && isSame(before.rule, rule) ? before.parts : compileParts(rule, files, thread);
          kept.set(rule.id, { rule, parts });
          return parts;
        },
      );
      known = kept;
      return compiled;
    },
  };
}

/** Compiles rules for one run, enabled or not. */
export function compileOnce(rules: readonly StoredRewrite[], files: MappedFiles, thread: TextThread): RewriteRules {
  return joined(rules, (rule) => compileParts(rule, files, thread));
}

/** Made of the same stored texts; a rule that only counted hits or changed its place is. */
function isSame(one: StoredRewrite, other: StoredRewrite): boolean {
  return one.condition === other.condition && one.actions === other.actions && one.direction === other.direction;
}

function compileParts(rule: StoredRewrite, files: MappedFiles, thread: TextThread): CompiledParts {
  const { direction } = rule;
  const condition = compileCondition(rule.condition);
  const actions = rule.actions.map((action) => compileAction(action, files, thread));
  const forRequests = actions.flatMap(({ request }) => request ?? []);
  const forResponses = actions.flatMap(({ response }) => response ?? []);
  const isOnRequests = direction !== "response" && forRequests.length > 0 && condition.atRequest.possible;
  const isOnResponses = direction !== "request" && forResponses.length > 0 && condition.atResponse.possible;
  return {
    condition,
    request: isOnRequests ? forRequests : undefined,
    response: isOnResponses ? forResponses : undefined,
  };
}

function joined(rules: readonly StoredRewrite[], partsOf: (rule: StoredRewrite) => CompiledParts): RewriteRules {
  const request: CompiledRule[] = [];
  const response: CompiledRule[] = [];
  const issues: { rule: string; issue: string }[] = [];
  for (const rule of rules.toSorted((one, other) => one.priority - other.priority)) {
    try {
      const { id, name } = rule;
      const parts = partsOf(rule);
      const { condition } = parts;
      if (parts.request) request.push({ id, name, condition, actions: parts.request, order: request.length });
      if (parts.response) response.push({ id, name, condition, actions: parts.response, order: response.length });
    } catch (error) {
      issues.push({ rule: rule.id, issue: (error as Error).message });
    }
  }
  return {
    request: compileConditionSet(request, (rule) => rule.condition),
    response: compileConditionSet(response, (rule) => rule.condition),
    keepsRequestBody: response.some(({ condition }) => condition.atResponse.request),
    issues,
  };
}
