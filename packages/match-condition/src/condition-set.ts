import type { MessageSide } from "@headworks/capture-contract";
import { foldAscii } from "@headworks/query-language";
import { type FieldFact, hintOf, type MatchHint, MIN_TEXT_LENGTH, type UrlText } from "./compile.ts";
import type { CompiledCondition, MatchSubject } from "./subject.ts";

/** Rules of one kind in order of application. Immutable. */
export interface ConditionSet<R> {
  readonly size: number;
  /**
   * The rules that may match a subject, in order: those not excluded by phase, URL, method or header fields. One pass
   * over the URL and at most one over the fields, regardless of the number of rules; the caller evaluates each
   * candidate's condition.
   */
  candidates(subject: MatchSubject): readonly R[];
}

const NONE: readonly never[] = [];

/** Number of distinct values of {@link bitOf}. */
const PIECE_BITS = 65_536;

/** Rules that require a header field of one name, by its exact value or by a substring. */
interface FieldRules {
  readonly byValue: Map<string, number[]>;
  readonly byText: Map<string, number[]>;
}

class PhaseIndex<R> {
  readonly #phase: MessageSide;
  readonly #rules: readonly R[];
  /** Rules by a four-character piece that their URL contains. */
  readonly #byPiece = new Map<number, number[]>();
  /** A bit per hash of a piece, so that most positions of a URL need no look-up. */
  readonly #seenPieces = new Uint8Array(PIECE_BITS);
  readonly #byField: Readonly<Record<MessageSide, Map<string, FieldRules>>> = {
    request: new Map(),
    response: new Map(),
  };
  readonly #byMethod = new Map<string, number[]>();
  readonly #always: number[] = [];
  /** Rules that pieces cannot find in percent-encoded URLs. */
  readonly #whenEncoded: number[] = [];
  readonly #methods: readonly (ReadonlySet<string> | undefined)[];
  /** The number of the query that last found each rule. */
  readonly #foundIn: Uint32Array;
  #question = 0;

  constructor(phase: MessageSide, rules: readonly R[], conditionOf: (rule: R) => CompiledCondition) {
    this.#phase = phase;
    this.#rules = rules;
    this.#foundIn = new Uint32Array(rules.length);
    const ruleHints = rules.map((rule) => hintOf(conditionOf(rule)));
    this.#methods = ruleHints.map(({ methods }) => methods);
    const frequency = pieceFrequencies(ruleHints);
    for (const [rule, { texts, fields, methods }] of ruleHints.entries()) {
      if (texts !== undefined) this.#addTexts(rule, texts, frequency);
      else if (fields !== undefined) this.#addFields(rule, fields);
      else if (methods !== undefined) for (const method of methods) listAt(this.#byMethod, method).push(rule);
      else this.#always.push(rule);
    }
  }

  #addTexts(rule: number, texts: readonly UrlText[], frequency: Uint32Array): void {
    for (const text of texts) {
      const piece = rarestPiece(text, frequency);
      const rules = listAt(this.#byPiece, piece);
      if (rules.at(-1) !== rule) rules.push(rule);
      this.#seenPieces[bitOf(piece)] = 1;
      if (text.plainOnly && this.#whenEncoded.at(-1) !== rule) this.#whenEncoded.push(rule);
    }
  }

  #addFields(rule: number, fields: readonly FieldFact[]): void {
    for (const { side, name, value, contains } of fields) {
      const names = this.#byField[side === "passing" ? this.#phase : side];
      let rules = names.get(name);
      if (rules === undefined) names.set(name, (rules = { byValue: new Map(), byText: new Map() }));
      const list = value === undefined ? listAt(rules.byText, contains) : listAt(rules.byValue, value);
      if (list.at(-1) !== rule) list.push(rule);
    }
  }

  candidates(subject: MatchSubject): readonly R[] {
    if (this.#rules.length === 0) return NONE;
    const found = this.#found(subject);
    if (found.length === 0) return NONE;
    if (!isAscending(found)) found.sort((left, right) => left - right);
    const candidates: R[] = [];
    for (const rule of found) {
      const candidate = this.#rules[rule];
      if (candidate !== undefined) candidates.push(candidate);
    }
    return candidates;
  }

  #found(subject: MatchSubject): number[] {
    const method = subject.method.toUpperCase();
    const found = [...this.#always, ...(this.#byMethod.get(method) ?? NONE)];
    this.#question += 1;
    // The counter would wrap after 2^32 queries, and old marks would look current.
    if (this.#question > 0xffff_ffff) {
      this.#foundIn.fill(0);
      this.#question = 1;
    }
    if (this.#byPiece.size > 0) this.#findByUrl(subject.url, method, found);
    const { request, response } = this.#byField;
    if (request.size > 0) this.#findByFields(request, subject.requestFields(), method, found);
    if (response.size > 0) this.#findByFields(response, subject.responseFields(), method, found);
    return found;
  }

  #findByUrl(url: string, method: string, found: number[]): void {
    let piece = 0;
    for (let index = 0; index < url.length; index += 1) {
      piece = ((piece << 8) | lowered(url.charCodeAt(index))) >>> 0;
      if (this.#seenPieces[bitOf(piece)] === 1 && index >= MIN_TEXT_LENGTH - 1) this.#take(piece, method, found);
    }
    if (this.#whenEncoded.length > 0 && url.includes("%")) {
      for (const rule of this.#whenEncoded) this.#takeRule(rule, method, found);
    }
  }

  #findByFields(
    names: ReadonlyMap<string, FieldRules>,
    fields: readonly string[],
    method: string,
    found: number[],
  ): void {
    for (let index = 0; index + 1 < fields.length; index += 2) {
      const rules = names.get(foldAscii(fields[index] ?? ""));
      if (rules === undefined) continue;
      const value = fields[index + 1] ?? "";
      for (const rule of rules.byValue.get(value) ?? NONE) this.#takeRule(rule, method, found);
      if (rules.byText.size === 0) continue;
      const folded = foldAscii(value);
      for (const [text, listed] of rules.byText) {
        if (folded.includes(text)) for (const rule of listed) this.#takeRule(rule, method, found);
      }
    }
  }

  #take(piece: number, method: string, found: number[]): void {
    for (const rule of this.#byPiece.get(piece) ?? NONE) this.#takeRule(rule, method, found);
  }

  #takeRule(rule: number, method: string, found: number[]): void {
    if (this.#foundIn[rule] === this.#question) return;
    this.#foundIn[rule] = this.#question;
    if (this.#methods[rule]?.has(method) !== false) found.push(rule);
  }
}

/** Builds a set that keeps the order of rules. Rules that cannot match in a phase are not candidates there. */
export function compileConditionSet<R>(
  rules: readonly R[],
  conditionOf: (rule: R) => CompiledCondition,
): ConditionSet<R> {
  const atRequest = new PhaseIndex(
    "request",
    rules.filter((rule) => conditionOf(rule).atRequest.possible),
    conditionOf,
  );
  const atResponse = new PhaseIndex(
    "response",
    rules.filter((rule) => conditionOf(rule).atResponse.possible),
    conditionOf,
  );
  return {
    size: rules.length,
    candidates: (subject) => (subject.phase === "request" ? atRequest : atResponse).candidates(subject),
  };
}

function isAscending(numbers: readonly number[]): boolean {
  for (let index = 1; index < numbers.length; index += 1) {
    if ((numbers[index - 1] ?? 0) > (numbers[index] ?? 0)) return false;
  }
  return true;
}

/** The low byte of a code unit, ASCII letters in lower case. Collisions are resolved by the condition itself. */
function lowered(unit: number): number {
  return unit >= 0x41 && unit <= 0x5a ? unit + 32 : unit & 0xff;
}

/** Multiplicative hash, because the low bytes of pieces repeat. */
function bitOf(piece: number): number {
  return Math.imul(piece, 0x9e3779b1) >>> 16;
}

/** Pieces of texts by object: sets are rebuilt whenever a rule changes. */
const knownPieces = new WeakMap<UrlText, Uint32Array>();

function piecesOf(text: UrlText): Uint32Array {
  let pieces = knownPieces.get(text);
  if (pieces === undefined) knownPieces.set(text, (pieces = cutToPieces(text.text)));
  return pieces;
}

function cutToPieces(text: string): Uint32Array {
  const pieces = new Uint32Array(Math.max(0, text.length - MIN_TEXT_LENGTH + 1));
  let piece = 0;
  for (let index = 0; index < text.length; index += 1) {
    piece = ((piece << 8) | lowered(text.charCodeAt(index))) >>> 0;
    if (index >= MIN_TEXT_LENGTH - 1) pieces[index - MIN_TEXT_LENGTH + 1] = piece;
  }
  return pieces;
}

/** Occurrences of pieces in the rules' texts, by hash; a collision only makes the choice of pieces worse. */
function pieceFrequencies(hints: readonly MatchHint[]): Uint32Array {
  const counts = new Uint32Array(PIECE_BITS);
  for (const { texts } of hints) {
    for (const text of texts ?? NONE) {
      for (const piece of piecesOf(text)) {
        const bit = bitOf(piece);
        counts[bit] = (counts[bit] ?? 0) + 1;
      }
    }
  }
  return counts;
}

/** The piece shared by the fewest rules; of equal ones the last, since ends of URLs differ most. */
function rarestPiece(text: UrlText, counts: Uint32Array): number {
  let rarest = 0;
  let min = Infinity;
  for (const piece of piecesOf(text)) {
    const count = counts[bitOf(piece)] ?? 0;
    if (count <= min) [rarest, min] = [piece, count];
  }
  return rarest;
}

function listAt<K>(lists: Map<K, number[]>, key: K): number[] {
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = []));
  return list;
}
