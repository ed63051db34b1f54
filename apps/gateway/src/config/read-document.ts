import { resolve } from "node:path";
import { DocumentSchema, GatewaySettings } from "@headworks/gateway-contract";
import type { ConfigDocument, DocumentInput, Issue } from "@headworks/gateway-contract";
import { isMap, isScalar, isSeq } from "yaml";
import type { Node, Pair, YAMLMap } from "yaml";
import { mapAnnotated } from "./annotated-fields.ts";
import { pointer, type Place } from "./pointer.ts";
import type { Schema } from "./schema-shape.ts";
import { atOnce, type Steps } from "./steps.ts";
import { StructureReader, UNREADABLE } from "./structure.ts";
import { keyText, offsetOf, yamlSteps, type YamlSource } from "./yaml-source.ts";

/** Finds the values of a {@link ConfigDocument} in the text it was read from. */
export interface SourcePlaces {
  /**
   * JSON pointer of a value in the text, and its line and column where the text has it; for a value that is not there,
   * those of the nearest that is around it.
   */
  locate(place: Place): { readonly path: string; readonly line?: number; readonly column?: number };
}

/** What reading a text came to. */
export interface DocumentReading {
  /**
   * The document in one shape; file paths in it are absolute. What the schema does not know is left out. Undefined when
   * something in it could not be read.
   */
  readonly document?: ConfigDocument;
  /** The document as it was written. */
  readonly input?: DocumentInput;
  /**
   * What checks look at: the document, or where something in it could not be read, drafts that differ in what stands
   * there instead. None when the text has no mapping at its root, or so much is wrong that no more would be listed.
   */
  readonly drafts: readonly ConfigDocument[];
  /** JSON pointers of what stands there instead, in the text. */
  readonly unread: ReadonlySet<string>;
  /** Everything that is wrong with its structure, in the order of the text. */
  readonly issues: readonly Issue[];
  /** Errors beyond those that are listed. */
  readonly unlisted: number;
  readonly places: SourcePlaces;
  /** The text is not YAML somewhere, so that nobody knows what else is missing. */
  readonly isPartial: boolean;
}

/** The schema of documents, as far as it concerns reading. */
export const documentSchema: Schema = DocumentSchema as unknown as Schema;
const settingNames = Object.keys(GatewaySettings.properties);

/**
 * Reads a configuration, YAML 1.2 or JSON, and checks its structure. Relative file paths start at `directory` (default:
 * the working directory). Never throws; finds everything that is wrong, not only the first.
 */
export function readDocument(text: string, directory = "."): DocumentReading {
  return atOnce(readingSteps(text, directory));
}

/** The steps of {@link readDocument}, for who has other things to do meanwhile. */
export function* readingSteps(text: string, directory: string): Steps<DocumentReading> {
  const source = yield* yamlSteps(text);
  yield;
  const reader = new StructureReader(source);
  const value = source.root === undefined ? UNREADABLE : yield* reader.rootSteps(documentSchema, source.root);
  yield;
  const issues = inTextOrder([...source.issues, ...reader.issues]);
  const places = new TextPlaces(source);
  const { gaps } = reader;
  const reading = {
    places,
    unlisted: source.unlisted + reader.unlisted,
    unread: gaps.pointers,
    isPartial: source.isBroken,
  };
  if (value === UNREADABLE) return { ...reading, issues, drafts: [] };
  const input = value as DocumentInput;
  issues.push(...duplicateSettings(input, places));
  const drafts: ConfigDocument[] = [];
  for (const draft of gaps.drafts(input)) {
    drafts.push(oneShape(mapAnnotated(documentSchema, draft, "x-file", (path) => resolve(directory, path))));
    yield;
  }
  const outcome = { ...reading, issues: inTextOrder(issues), drafts };
  const [document] = drafts;
  return gaps.pointers.size > 0 || document === undefined ? outcome : { ...outcome, document, input };
}

/** Issues by line and column; those without a place first. Each code and place once. */
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

function duplicateSettings(input: DocumentInput, places: TextPlaces): Issue[] {
  const written = input as Readonly<Record<string, unknown>>;
  return settingNames
    .filter((name) => written[name] !== undefined && input.gateway?.[name as keyof GatewaySettings] !== undefined)
    .map((name) => ({
      code: "duplicate_setting",
      ...places.inText([name]),
      message: `"${name}" is set at the root and under "gateway"; keep one of them`,
      severity: "error",
    }));
}

class TextPlaces implements SourcePlaces {
  readonly #source: YamlSource;
  readonly #pairsByKey = new WeakMap<YAMLMap, ReadonlyMap<unknown, Pair>>();

  constructor(source: YamlSource) {
    this.#source = source;
  }

  locate(place: Place): { path: string; line?: number; column?: number } {
    const isRootSetting = place[0] === "gateway" && place.length > 1 && this.#isAtRoot(place[1]);
    return this.inText(isRootSetting ? place.slice(1) : place);
  }

  #isAtRoot(name: unknown): boolean {
    return this.#source.root !== undefined && this.#member(this.#source.root, String(name)) !== undefined;
  }

  /** The same for a place of the document as it was written. */
  inText(place: Place): { path: string; line?: number; column?: number } {
    let node: Node | undefined = this.#source.root;
    let offset = offsetOf(node);
    for (const step of place) {
      const member: Member | undefined = node === undefined ? undefined : this.#member(node, step);
      node = member?.node;
      offset = member?.offset ?? offset;
    }
    return { path: pointer(place), ...(offset === undefined ? {} : this.#source.position(offset)) };
  }

  /** A mapping is searched for each issue in it, and a hostile one has thousands of both. The first of equal keys counts. */
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
    // Of a mapping or list, the key says more than its first member does.
    const at = isScalar(value) ? (offsetOf(pair.value) ?? offsetOf(pair.key)) : offsetOf(pair.key);
    return { node: value, offset: at };
  }
}

interface Member {
  readonly node: Node | undefined;
  readonly offset: number | undefined;
}
