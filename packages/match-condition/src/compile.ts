import type { Condition } from "@headworks/capture-contract";
import type { BodyNeeds, CompiledCondition, Decision, Explanation } from "./compiled.ts";
import { explainLeaf, joinTexts } from "./explain.ts";
import { compileLeaf, type CompiledLeaf, type Cost, type Leaf } from "./leaves.ts";
import type { MatchSubject } from "./subject.ts";
import type { MatchHint } from "./match-hint.ts";
import { hintOfAll, hintOfAny, hintOfLeaf, NO_HINT } from "./match-hint.ts";

export interface PhaseFacts extends BodyNeeds {
  readonly possible: boolean;
  readonly avoidable: boolean;
}

interface Node {
  readonly cost: number;
  readonly atRequest: PhaseFacts;
  readonly atResponse: PhaseFacts;
  readonly needsResponse: boolean;
  readonly hint: MatchHint;
  decide(subject: MatchSubject): Decision;
  explain(subject: MatchSubject, pointer: string): Explanation;
}

const COSTS: Readonly<Record<Cost, number>> = { nothing: 0, line: 1, text: 2, fields: 3, body: 4 };

/** Compiled forms by condition object, since rules are recompiled whenever one of them changes. */
const known = new WeakMap<Condition, CompiledCondition>();

const hints = new WeakMap<CompiledCondition, MatchHint>();

/** The facts about URL and method that hold for every matching subject. */
export function hintOf(compiled: CompiledCondition): MatchHint {
  return hints.get(compiled) ?? NO_HINT;
}

/**
 * Compiles a condition; cached by object, which must not be mutated. Throws a `RangeError` for an invalid condition:
 * validate external input with `parseCondition` first.
 */
export function compileCondition(condition: Condition): CompiledCondition {
  const before = known.get(condition);
  if (before !== undefined) return before;
  const compiled = compiledAnew(condition);
  known.set(condition, compiled);
  return compiled;
}

function compiledAnew(condition: Condition): CompiledCondition {
  const node = compileNode(condition);
  const compiled: CompiledCondition = {
    condition,
    atRequest: node.atRequest,
    atResponse: node.atResponse,
    needsRequestBody: node.atRequest.request,
    needsResponse: node.needsResponse,
    needsResponseBody: node.atResponse.response,
    decide: (subject) => node.decide(subject),
    matches: (subject) => node.decide(subject) === true,
    explain: (subject) => node.explain(subject, ""),
  };
  hints.set(compiled, node.hint);
  return Object.freeze(compiled);
}

function compileNode(condition: Condition): Node {
  switch (condition.type) {
    case "and":
    case "or":
      return compileJoin(condition.type, condition.conditions.map(compileNode));
    case "not":
      return compileNot(compileNode(condition.condition));
    default:
      return leafNode(condition, compileLeaf(condition));
  }
}

const IMPOSSIBLE: PhaseFacts = { possible: false, avoidable: true, request: false, response: false };

function leafNode(leaf: Leaf, compiled: CompiledLeaf): Node {
  const { about, cost } = compiled;
  const facts = (phase: "request" | "response"): PhaseFacts => {
    if (about === "response" && phase === "request") return IMPOSSIBLE;
    const side = about === "passing" ? phase : about === "response" ? "response" : "request";
    const readsBody = cost === "body";
    return {
      possible: true,
      avoidable: leaf.type !== "all",
      request: readsBody && side === "request",
      response: readsBody && side === "response",
    };
  };
  const decide =
    about === "response"
      ? (subject: MatchSubject): Decision => subject.phase === "response" && compiled.decide(subject)
      : (subject: MatchSubject): Decision => compiled.decide(subject);
  return {
    cost: COSTS[cost],
    atRequest: facts("request"),
    atResponse: facts("response"),
    needsResponse: about === "response",
    hint: hintOfLeaf(leaf, compiled),
    decide,
    explain: (subject, pointer) => explainLeaf(leaf, compiled, subject, decide(subject), pointer),
  };
}

function joinFacts(kind: "and" | "or", facts: readonly PhaseFacts[]): PhaseFacts {
  const possible = kind === "and" ? facts.every((part) => part.possible) : facts.some((part) => part.possible);
  const avoidable = kind === "and" ? facts.some((part) => part.avoidable) : facts.every((part) => part.avoidable);
  return {
    possible,
    avoidable,
    // A body is not needed when the outcome is certain without it.
    request: possible && avoidable && facts.some((part) => part.request),
    response: possible && avoidable && facts.some((part) => part.response),
  };
}

function compileJoin(kind: "and" | "or", parts: readonly Node[]): Node {
  const ordered = parts.toSorted((left, right) => left.cost - right.cost);
  const deciding = kind === "or";
  const decide = (subject: MatchSubject): Decision => {
    let outcome: Decision = !deciding;
    for (const part of ordered) {
      const decision = part.decide(subject);
      if (decision === deciding) return deciding;
      if (decision === "needs-body") outcome = decision;
    }
    return outcome;
  };
  const partHints = parts.map(({ hint }) => hint);
  return {
    cost: ordered.at(-1)?.cost ?? 0,
    atRequest: joinFacts(
      kind,
      parts.map(({ atRequest }) => atRequest),
    ),
    atResponse: joinFacts(
      kind,
      parts.map(({ atResponse }) => atResponse),
    ),
    needsResponse: parts.some(({ needsResponse }) => needsResponse),
    hint: kind === "and" ? hintOfAll(partHints) : hintOfAny(partHints),
    decide,
    explain: (subject, pointer) => {
      const explained = parts.map((part, index) => part.explain(subject, `${pointer}/conditions/${index}`));
      return joinTexts(kind, decide(subject), pointer, explained);
    },
  };
}

function compileNot(part: Node): Node {
  const negated = ({ possible, avoidable, request, response }: PhaseFacts): PhaseFacts => ({
    possible: avoidable,
    avoidable: possible,
    request,
    response,
  });
  const decide = (subject: MatchSubject): Decision => {
    const decision = part.decide(subject);
    return decision === "needs-body" ? decision : !decision;
  };
  return {
    cost: part.cost,
    atRequest: negated(part.atRequest),
    atResponse: negated(part.atResponse),
    needsResponse: part.needsResponse,
    hint: NO_HINT,
    decide,
    explain: (subject, pointer) =>
      joinTexts("not", decide(subject), pointer, [part.explain(subject, `${pointer}/condition`)]),
  };
}
