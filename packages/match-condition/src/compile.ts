import type { Condition } from "@headworks/capture-contract";
import { utf8Octets } from "@headworks/http-fields";
import { foldAscii } from "@headworks/query-language";
import type { BodyNeeds, CompiledCondition, MatchResult, Explanation, MatchSubject } from "./subject.ts";
import { explainLeaf, joinTexts } from "./describe.ts";
import { type CompiledLeaf, compileLeaf, type Cost, type Leaf } from "./leaves.ts";

/** A text in the URL of matching subjects. */
export interface UrlText {
  /** ASCII letters in lower case. */
  readonly text: string;
  /** Does not apply to URLs with a `%`, where the text may be encoded. */
  readonly plainOnly: boolean;
}

/** A header field of matching subjects. */
export interface FieldFact {
  readonly side: "request" | "response" | "passing";
  readonly name: string;
  /** The exact value of one field; undefined means any. */
  readonly value: string | undefined;
  /** A substring of one value, ASCII letters in lower case. */
  readonly contains: string;
}

/** Facts about every matching subject; undefined parts state nothing. */
export interface MatchHint {
  readonly texts: readonly UrlText[] | undefined;
  readonly fields: readonly FieldFact[] | undefined;
  /** The upper-case method is one of these. */
  readonly methods: ReadonlySet<string> | undefined;
}

const NO_HINT: MatchHint = { texts: undefined, fields: undefined, methods: undefined };

/** Shorter texts are not indexed. */
export const MIN_TEXT_LENGTH = 4;

/** More alternatives cost more than they save. */
const MAX_TEXTS = 64;

function hintOfLeaf(leaf: Leaf, { urlText, plainUrlText, fieldText = "" }: CompiledLeaf): MatchHint {
  if (leaf.type === "method") return { ...NO_HINT, methods: new Set([leaf.method.toUpperCase()]) };
  const fields = fieldsOf(leaf, fieldText);
  if (fields !== undefined) return { ...NO_HINT, fields };
  const text = urlText ?? plainUrlText ?? "";
  if (text.length < MIN_TEXT_LENGTH) return NO_HINT;
  return { ...NO_HINT, texts: [{ text, plainOnly: urlText === undefined }] };
}

/** The fields of which one is present. */
function fieldsOf(leaf: Leaf, contains: string): readonly FieldFact[] | undefined {
  switch (leaf.type) {
    case "header": {
      const fact: Omit<FieldFact, "value"> = { side: leaf.side ?? "passing", name: foldAscii(leaf.name), contains };
      if (leaf.value === undefined || leaf.value === null) return [{ ...fact, value: undefined }];
      return [...new Set([leaf.value, utf8Octets(leaf.value)])].map((value) => ({ ...fact, value }));
    }
    case "header_pattern":
      return [{ side: leaf.side ?? "passing", name: foldAscii(leaf.name), value: undefined, contains }];
    case "content_type":
      return [{ side: leaf.side ?? "passing", name: "content-type", value: undefined, contains }];
    default:
      return undefined;
  }
}

/** The hint of a conjunction: the most selective texts, and the intersection of methods. */
function hintOfAll(hints: readonly MatchHint[]): MatchHint {
  let texts: readonly UrlText[] | undefined;
  let fields: readonly FieldFact[] | undefined;
  let methods: ReadonlySet<string> | undefined;
  for (const hint of hints) {
    if (hint.fields !== undefined && (fields === undefined || fieldsWorth(hint.fields) > fieldsWorth(fields))) {
      fields = hint.fields;
    }
    if (hint.texts !== undefined && (texts === undefined || worth(hint.texts) > worth(texts))) texts = hint.texts;
    if (hint.methods !== undefined) methods = methods === undefined ? hint.methods : methods.intersection(hint.methods);
  }
  return { texts, fields, methods };
}

/** The hint of a disjunction. */
function hintOfAny(hints: readonly MatchHint[]): MatchHint {
  const texts: UrlText[] = [];
  const fields: FieldFact[] = [];
  let methods: ReadonlySet<string> | undefined = new Set();
  let hasTexts = hints.length > 0;
  let hasFields = hints.length > 0;
  for (const hint of hints) {
    if (hint.texts === undefined) hasTexts = false;
    else texts.push(...hint.texts);
    if (hint.fields === undefined) hasFields = false;
    else fields.push(...hint.fields);
    methods = methods === undefined || hint.methods === undefined ? undefined : methods.union(hint.methods);
  }
  return {
    texts: hasTexts && texts.length <= MAX_TEXTS ? texts : undefined,
    fields: hasFields && fields.length <= MAX_TEXTS ? fields : undefined,
    methods: hints.length > 0 ? methods : undefined,
  };
}

function fieldsWorth(fields: readonly FieldFact[]): number {
  return (fields.every(({ value }) => value !== undefined) ? 2 : 1) / fields.length;
}

/** Few and long texts are the most selective. */
function worth(texts: readonly UrlText[]): number {
  const shortest = Math.min(...texts.map(({ text, plainOnly }) => (plainOnly ? text.length / 2 : text.length)));
  return shortest / texts.length;
}

interface PhaseFacts extends BodyNeeds {
  readonly possible: boolean;
  readonly avoidable: boolean;
}

interface Node {
  readonly cost: number;
  readonly atRequest: PhaseFacts;
  readonly atResponse: PhaseFacts;
  readonly needsResponse: boolean;
  readonly hint: MatchHint;
  decide(subject: MatchSubject): MatchResult;
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
      ? (subject: MatchSubject): MatchResult => subject.phase === "response" && compiled.decide(subject)
      : (subject: MatchSubject): MatchResult => compiled.decide(subject);
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
  const decide = (subject: MatchSubject): MatchResult => {
    let outcome: MatchResult = !deciding;
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
  const decide = (subject: MatchSubject): MatchResult => {
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
