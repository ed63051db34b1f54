import type { MockResponseConfig } from "@headworks/capture-contract";
import { decodeText, isTextual, parseQuery } from "@headworks/http-fields";
import { decodeContent, type DecodedContent } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, hasField, type RawFields } from "@headworks/http1";
import { readJson } from "@headworks/json";
import {
  type BodyText,
  compileCondition,
  compileConditionSet,
  type CompiledCondition,
  conditionOfResponse,
  NOT_READ,
} from "@headworks/match-condition";
import type { RequestMessage } from "#exchange/exchange.ts";
import { ExchangeSubject } from "#rules/exchange-subject.ts";
import { isExpired, type MockProgress, type StoredCollection, type StoredMock } from "./mock-rule.ts";
import { type PreparedResponse, prepareResponse } from "./prepared-response.ts";
import type { TemplateRequest } from "./template.ts";

/** Larger decoded bodies are treated as absent. */
const MAX_DECODED_BYTES = 16_777_216;

/** The subject of conditions and templates. The body is available after `readBody`. */
export class RequestSubject extends ExchangeSubject implements TemplateRequest {
  readonly #fields: Readonly<RawFields>;
  #body: BodyText = NOT_READ;
  #json: { readonly value: unknown } | undefined;

  constructor(request: Readonly<RequestMessage>) {
    super({ request, response: undefined }, "request");
    this.#fields = request.fields;
    const isFramed = hasField(request.fields, "content-length") || hasField(request.fields, "transfer-encoding");
    if (!isFramed && request.version !== "HTTP/2") this.#body = undefined;
  }

  get isBodyUnread(): boolean {
    return this.#body === NOT_READ;
  }

  /** Takes the whole content-coded body; undefined when it is unavailable. */
  async readBody(bytes: Uint8Array | undefined): Promise<void> {
    this.#body = bytes === undefined || bytes.length === 0 ? undefined : await this.#decoded(bytes);
  }

  async #decoded(bytes: Uint8Array): Promise<string | undefined> {
    const coding = fieldValues(this.#fields, "content-encoding");
    const decoded =
      coding.length === 0 ? bytes : await decodeContent(bytes, coding, { maxBytes: MAX_DECODED_BYTES }).then(whole);
    if (decoded === undefined) return undefined;
    const type = fieldValue(this.#fields, "content-type");
    // Bodies without a type are mostly JSON sent by hand.
    const { text, isDamaged } = decodeText(decoded, type);
    return isDamaged && !isTextual(type) ? undefined : text;
  }

  override requestText(): BodyText {
    return this.#body;
  }

  header(name: string): string | undefined {
    return fieldValue(this.#fields, name.toLowerCase());
  }

  queryParameter(name: string): string | undefined {
    return parseQuery(`?${this.query}`).find((parameter) => parameter.name === name)?.value;
  }

  text(): string {
    return typeof this.#body === "string" ? this.#body : "";
  }

  json(): unknown {
    if (this.#json === undefined) {
      let value: unknown;
      try {
        value = readJson(this.text());
      } catch {
        value = undefined;
      }
      this.#json = { value };
    }
    return this.#json.value;
  }
}

/** The decoded bytes, or the original ones on failure; undefined for a body that is too large. */
function whole({ bytes, stop }: DecodedContent): Uint8Array | undefined {
  return stop === "limit" ? undefined : bytes;
}

export interface CompiledMock {
  readonly rule: StoredMock;
  readonly condition: CompiledCondition;
  readonly choice: ResponseChoice;
  readonly progress: MockProgress;
}

/** The active rules; immutable, replaced on every change. */
export interface MockSet {
  readonly size: number;
  /** The matching rule; `needs-body` when that depends on a body not read yet. */
  find(subject: RequestSubject, nowMs: number): CompiledMock | "needs-body" | undefined;
  /** Rules that cannot be compiled and have no effect. */
  readonly issues: readonly { readonly id: string; readonly issue: string }[];
}

/** Compiles rules; unchanged parts are reused. */
export interface MockCompiler {
  compile(rules: readonly StoredMock[], collections: readonly StoredCollection[]): MockSet;
  /** Throws when the rule cannot be compiled. */
  one(rule: StoredMock): CompiledMock;
}

/** `progress` returns a rule's mutable state. */
export function createMockCompiler(progress: (id: string) => MockProgress): MockCompiler {
  const choices = new WeakMap<MockResponseConfig, ResponseChoice>();
  const one = (rule: StoredMock): CompiledMock => ({
    rule,
    condition: compileCondition(rule.condition),
    choice: kept(choices, rule.responseConfig, compileResponseChoice),
    progress: progress(rule.id),
  });
  return {
    one,
    compile: (rules, collections) => {
      const issues: { id: string; issue: string }[] = [];
      const compiled = candidates(rules, collections).flatMap((rule) => {
        try {
          return [one(rule)];
        } catch (error) {
          issues.push({ id: rule.id, issue: error instanceof Error ? error.message : String(error) });
          return [];
        }
      });
      return mockSet(compiled, issues);
    },
  };
}

function kept<K extends WeakKey, V>(cache: WeakMap<K, V>, key: K, make: (key: K) => V): V {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make(key);
  cache.set(key, made);
  return made;
}

/** The active rules, by priority and then oldest first. */
function candidates(rules: readonly StoredMock[], collections: readonly StoredCollection[]): StoredMock[] {
  const suppressed = new Set(collections.filter(({ enabled }) => !enabled).map(({ id }) => id));
  return rules
    .filter((rule) => rule.enabled && !rule.isRecorded && !suppressed.has(rule.collectionId ?? ""))
    .toSorted((a, b) => a.priority - b.priority);
}

function mockSet(mocks: readonly CompiledMock[], issues: MockSet["issues"]): MockSet {
  const set = compileConditionSet(mocks, ({ condition }) => condition);
  return {
    size: mocks.length,
    issues,
    find: (subject, nowMs) => {
      for (const mock of set.candidates(subject)) {
        const decision = mock.condition.decide(subject);
        if (decision === false || isExpired(mock.rule, mock.progress.hits, nowMs)) continue;
        return decision === true ? mock : decision;
      }
      return undefined;
    },
  };
}

interface Choice {
  readonly response: PreparedResponse;
  /** Null for a rule with one response. */
  readonly index: number | null;
}

interface ResponseChoice {
  readonly needsBody: boolean;
  /** `isPeek` does not advance a sequence. */
  choose(subject: RequestSubject, progress: MockProgress, random: number, isPeek: boolean): Choice;
}

/** Patterns were checked when the rule was written. */
export function compileResponseChoice(config: MockResponseConfig): ResponseChoice {
  switch (config.type) {
    case "single": {
      const response = prepareResponse(config.response);
      return { needsBody: response.needsBody, choose: () => ({ response, index: null }) };
    }
    case "sequence":
      return compileSequence(config.responses.map(prepareResponse), config.cycle ?? true);
    case "probabilistic":
      return compileLottery(
        config.responses.map(({ response }) => prepareResponse(response)),
        config.responses.map(({ weight }) => weight),
      );
    case "conditional":
      return compileConditional(
        config.conditions.map(({ condition, response }) => ({
          condition: compileCondition(conditionOfResponse(condition)),
          response: prepareResponse(response),
        })),
        prepareResponse(config.default_response),
      );
  }
}

function compileSequence(responses: readonly PreparedResponse[], isCycle: boolean): ResponseChoice {
  const last = responses.length - 1;
  return {
    needsBody: responses.some((response) => response.needsBody),
    choose: (_subject, progress, _random, isPeek) => {
      const index = Math.min(progress.nextIndex, last);
      if (!isPeek) progress.nextIndex = index < last ? index + 1 : isCycle ? 0 : last;
      return { response: responses[index] as PreparedResponse, index };
    },
  };
}

function compileLottery(responses: readonly PreparedResponse[], weights: readonly number[]): ResponseChoice {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return {
    needsBody: responses.some((response) => response.needsBody),
    choose: (_subject, _progress, random) => {
      let rest = random * sum;
      let index = weights.findIndex((weight) => (rest -= weight) < 0);
      if (index === -1) index = responses.length - 1;
      return { response: responses[index] as PreparedResponse, index };
    },
  };
}

function compileConditional(
  cases: readonly { readonly condition: CompiledCondition; readonly response: PreparedResponse }[],
  otherwise: PreparedResponse,
): ResponseChoice {
  return {
    needsBody:
      otherwise.needsBody || cases.some(({ condition, response }) => condition.atRequest.request || response.needsBody),
    choose: (subject) => {
      const index = cases.findIndex(({ condition }) => condition.matches(subject));
      return { response: cases[index]?.response ?? otherwise, index: index === -1 ? cases.length : index };
    },
  };
}
