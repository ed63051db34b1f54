import {
  compileCondition,
  compileConditionSet,
  type CompiledCondition,
  type ConditionSet,
} from "@headworks/match-condition";
import type { MappedFiles } from "./mapped-files.ts";
import type { StoredRewrite } from "./rewrite-rule.ts";
import { compileAction } from "./rewrite-actions.ts";
import type { Apply } from "#rules/message-edit.ts";
import type { TextThread } from "./text-thread.ts";

export interface CompiledRule {
  readonly id: string;
  readonly name: string;
  readonly condition: CompiledCondition;
  readonly actions: readonly Apply[];
  readonly order: number;
}

/** The enabled rules in order of application; immutable, replaced on every change. */
export interface RewriteRules {
  readonly request: ConditionSet<CompiledRule>;
  readonly response: ConditionSet<CompiledRule>;
  /** True when a response rule needs the request body, which has been forwarded by then. */
  readonly keepsRequestBody: boolean;
  /** Stored rules that cannot be compiled and have no effect. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** The compiled parts that do not depend on other rules; undefined for phases without effect. */
interface CompiledParts {
  readonly condition: CompiledCondition;
  readonly request: readonly Apply[] | undefined;
  readonly response: readonly Apply[] | undefined;
}

/** Unchanged rules are compiled once. */
export interface RewriteCompiler {
  /** Rules are given oldest first; disabled ones are skipped. */
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

/** Compiles rules for a single run, enabled or not. */
export function compileOnce(rules: readonly StoredRewrite[], files: MappedFiles, thread: TextThread): RewriteRules {
  return joined(rules, (rule) => compileParts(rule, files, thread));
}

/** True when the compiled parts are equal: hits and position do not matter. */
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
