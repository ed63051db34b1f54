import { resolve } from "node:path";
import { DocumentSchema, GatewaySettings } from "@headworks/gateway-contract";
import type { ConfigDocument, DocumentInput, Issue } from "@headworks/gateway-contract";
import { isMap, isScalar, isSeq } from "yaml";
import type { Node, Pair, YAMLMap } from "yaml";
import { mapAnnotated } from "./annotated-fields.ts";
import { pointer, type FieldPath } from "./pointer.ts";
import type { Schema } from "./schema-shape.ts";
import { atOnce, type Steps } from "./steps.ts";
import { StructureReader, UNREADABLE } from "./structure.ts";
import { keyText, offsetOf, yamlSteps, type YamlSource } from "./yaml-source.ts";

/** Maps paths of a {@link ConfigDocument} to its source text. */
export interface SourcePositions {
  /** JSON pointer, line and column of a value; for an absent value those of its nearest ancestor. */
  locate(fieldPath: FieldPath): { readonly path: string; readonly line?: number; readonly column?: number };
}

export interface DocumentReading {
  /**
   * The normalized document with absolute file paths and without unknown fields. Undefined if any part is unreadable.
   */
  readonly document?: ConfigDocument;
  /** The document as written. */
  readonly input?: DocumentInput;
  /**
   * Documents to check: the document itself, or drafts with different placeholders for unreadable values. Empty if the
   * root is no mapping or the issue limit is reached.
   */
  readonly drafts: readonly ConfigDocument[];
  /** JSON pointers of placeholders in the text. */
  readonly unread: ReadonlySet<string>;
  /** Structural issues in text order. */
  readonly issues: readonly Issue[];
  /** Errors above the limit. */
  readonly unlisted: number;
  readonly positions: SourcePositions;
  /** The text has YAML syntax errors, so parts may be missing. */
  readonly isPartial: boolean;
}

/** The document schema as the readers use it. */
export const documentSchema: Schema = DocumentSchema as unknown as Schema;
const settingNames = Object.keys(GatewaySettings.properties);

/**
 * Parses YAML 1.2 or JSON and checks the structure. Relative file paths resolve against `directory` (default: the
 * working directory). Never throws; reports all errors, not only the first.
 */
export function readDocument(text: string, directory = "."): DocumentReading {
  return atOnce(readingSteps(text, directory));
}

/** The steps of {@link readDocument}, for callers that interleave other work. */
export function* readingSteps(text: string, directory: string): Steps<DocumentReading> {
  const source = yield* yamlSteps(text);
  yield;
  const reader = new StructureReader(source);
  const value = source.root === undefined ? UNREADABLE : yield* reader.rootSteps(documentSchema, source.root);
  yield;
  const issues = inTextOrder([...source.issues, ...reader.issues]);
  const positions = new TextPositions(source);
  const { gaps } = reader;
  const reading = {
    positions,
    unlisted: source.unlisted + reader.unlisted,
    unread: gaps.pointers,
    isPartial: source.isBroken,
  };
  if (value === UNREADABLE) return { ...reading, issues, drafts: [] };
  const input = value as DocumentInput;
  issues.push(...duplicateSettings(input, positions));
  const drafts: ConfigDocument[] = [];
  for (const draft of gaps.drafts(input)) {
    drafts.push(oneShape(mapAnnotated(documentSchema, draft, "x-file", (path) => resolve(directory, path))));
    yield;
  }
  const outcome = { ...reading, issues: inTextOrder(issues), drafts };
  const [document] = drafts;
  return gaps.pointers.size > 0 || document === undefined ? outcome : { ...outcome, document, input };
}

/** Sorts issues by line and column, those without position first, and removes duplicates of code and path. */
export function inTextOrder(issues: readonly Issue[]): Issue[] {
  const seen = new Set<string>();
  return issues
    .filter(({ code, path }) => {
      const key = `${code} ${path}`;
      return !seen.has(key) && seen.add(key);
    })
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

function oneShape(input: DocumentInput): ConfigDocument {
  const settings: Record<string, unknown> = { ...input.gateway };
  const written = input as Readonly<Record<string, unknown>>;
  for (const name of settingNames) if (written[name] !== undefined) settings[name] = written[name];
  return {
    gateway: settings,
    listeners: input.listeners ?? [],
    upstreams: input.upstreams ?? [],
    services: input.services ?? [],
    routes: input.routes ?? [],
    consumers: input.consumers ?? [],
    policies: input.policies ?? [],
    webhooks: input.webhooks ?? [],
    admin: input.admin,
    analytics: input.analytics,
  };
}

function duplicateSettings(input: DocumentInput, positions: TextPositions): Issue[] {
  const written = input as Readonly<Record<string, unknown>>;
  return settingNames
    .filter((name) => written[name] !== undefined && input.gateway?.[name as keyof GatewaySettings] !== undefined)
    .map((name) => ({
      code: "duplicate_setting",
      ...positions.inText([name]),
      message: `"${name}" is set at the root and under "gateway"; keep one of them`,
      severity: "error",
    }));
}

class TextPositions implements SourcePositions {
  readonly #source: YamlSource;
  readonly #pairsByKey = new WeakMap<YAMLMap, ReadonlyMap<unknown, Pair>>();

  constructor(source: YamlSource) {
    this.#source = source;
  }

  locate(fieldPath: FieldPath): { path: string; line?: number; column?: number } {
    const isRootSetting = fieldPath[0] === "gateway" && fieldPath.length > 1 && this.#isAtRoot(fieldPath[1]);
    return this.inText(isRootSetting ? fieldPath.slice(1) : fieldPath);
  }

  #isAtRoot(name: unknown): boolean {
    return this.#source.root !== undefined && this.#member(this.#source.root, String(name)) !== undefined;
  }

  /** Position of a path of the document as written. */
  inText(fieldPath: FieldPath): { path: string; line?: number; column?: number } {
    let node: Node | undefined = this.#source.root;
    let offset = offsetOf(node);
    for (const step of fieldPath) {
      const member: Member | undefined = node === undefined ? undefined : this.#member(node, step);
      node = member?.node;
      offset = member?.offset ?? offset;
    }
    return { path: pointer(fieldPath), ...(offset === undefined ? {} : this.#source.position(offset)) };
  }

  /** Cached: hostile documents have thousands of issues in one mapping. The first of equal keys wins. */
  #pairs(map: YAMLMap): ReadonlyMap<unknown, Pair> {
    let known = this.#pairsByKey.get(map);
    if (known === undefined) {
      const pairs = new Map<unknown, Pair>();
      for (const pair of map.items) {
        const key = keyText(pair.key);
        if (key !== undefined && !pairs.has(key)) pairs.set(key, pair);
      }
      this.#pairsByKey.set(map, (known = pairs));
    }
    return known;
  }

  #member(node: Node, step: string | number): Member | undefined {
    if (isSeq(node) && typeof step === "number") {
      const item = node.items[step];
      return item === undefined ? undefined : { node: this.#source.resolve(item), offset: offsetOf(item) };
    }
    if (!isMap(node)) return undefined;
    const pair = this.#pairs(node).get(step);
    if (pair === undefined) return undefined;
    const value = this.#source.resolve(pair.value);
    // For a mapping or list, the key is a better position than its first member.
    const at = isScalar(value) ? (offsetOf(pair.value) ?? offsetOf(pair.key)) : offsetOf(pair.key);
    return { node: value, offset: at };
  }
}

interface Member {
  readonly node: Node | undefined;
  readonly offset: number | undefined;
}
