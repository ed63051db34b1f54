import {
  type Alias,
  Composer,
  type CST,
  type Document,
  type DocumentOptions,
  type ErrorCode,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  type ParseOptions,
  Parser,
  type SchemaOptions,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { Issue } from "@headworks/gateway-contract";
import { DEEPEST, jsonSteps, MAX_KEYS } from "./json-source.ts";
import { type FieldPath, pointer } from "./pointer.ts";
import { atOnce, type Steps } from "./steps.ts";

/** Maximum document size in bytes of UTF-8. */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
/** A hostile text could have one issue per byte. */
export const MAX_ISSUES = 500;
const TOO_DEEP = `The document is nested more than ${DEEPEST} levels deep`;
const TOO_MANY_KEYS = `A mapping may have at most ${MAX_KEYS} keys`;
const TOO_MANY_MISTAKES = `The text is not YAML in more than ${MAX_ISSUES} places, of which this is the last that was looked at`;

/** A parsed text: its tree and positions. */
export interface YamlSource {
  readonly root: Node | undefined;
  readonly issues: Issue[];
  /** Issues above the limit. */
  readonly unlisted: number;
  /** The text has syntax errors, so the tree may be incomplete. */
  readonly isBroken: boolean;
  /** Follows an alias; undefined for an absent node or a dangling alias. */
  resolve(node: unknown): Node | undefined;
  /** 1-based line and column of an offset. */
  position(offset: number): { readonly line: number; readonly column: number };
}

/** Replaces the parser's messages, which quote the text and thus possibly secrets. */
const SYNTAX: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: "An alias or anchor is not written correctly",
  BAD_DIRECTIVE: "A line that begins with % is not a directive of YAML 1.2",
  BAD_INDENT: "The indentation does not fit what is around it, or a bracket before it is not closed",
  BAD_SCALAR_START: "A plain text cannot begin with this character; put it in quotes",
  BAD_DQ_ESCAPE: 'A \\ in "…" does not begin an escape of YAML; write \\\\ for one backslash',
  BLOCK_AS_IMPLICIT_KEY: "A value that begins on a key's line cannot be a block; a line break or quotes are missing",
  BLOCK_IN_FLOW: "Lines by indentation cannot stand inside of [ ] or { }",
  DUPLICATE_KEY: "The key is there twice",
  IMPOSSIBLE: "The text is not YAML here",
  KEY_OVER_1024_CHARS: "A key may have at most 1024 characters",
  MISSING_CHAR: "A character is missing: a comma, a bracket, a colon, a quote or a space",
  MULTILINE_IMPLICIT_KEY: "A key has to be on one line; perhaps a quote or a colon is missing",
  MULTIPLE_ANCHORS: "A value has two anchors",
  MULTIPLE_DOCS: "The file has more than one document; keep what is before the second ---",
  MULTIPLE_TAGS: "A value has two tags",
  NON_STRING_KEY: "Keys have to be texts",
  RESOURCE_EXHAUSTION: TOO_DEEP,
  TAB_AS_INDENT: "Indentation is made of spaces, not of tabs",
  TAG_RESOLVE_FAILED: "This tag is not known; documents have plain values only",
  UNEXPECTED_TOKEN: "This does not belong here",
};

/** Parses YAML 1.2 (core schema, JSON included) to a tree without values. Never throws. */
export function readYaml(text: string): YamlSource {
  return atOnce(yamlSteps(text));
}

/** The steps of {@link readYaml}, about 10 ms each unless a single list member is that large. */
export function* yamlSteps(text: string): Steps<YamlSource> {
  const lines = new LineCounter();
  const position = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const refuse = (message: string): YamlSource => {
    const issue: Issue = { code: "syntax", path: "", message, severity: "error", line: 1, column: 1 };
    return { root: undefined, issues: [issue], unlisted: 0, isBroken: true, resolve: () => undefined, position };
  };
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes > MAX_DOCUMENT_BYTES) {
    return refuse(`The document may have at most ${MAX_DOCUMENT_BYTES} bytes; it has ${sizeBytes}`);
  }
  const survey = new Survey(position);
  const json = yield* jsonSteps(text, MEMBERS_OF_A_STEP);
  let document: Document.Parsed | undefined;
  try {
    if (json === undefined) document = yield* composed(text, lines, survey);
    else noteLines(text, lines);
  } catch (error) {
    // The recursive parser overflows only on thousands of nested flow collections.
    return refuse(error instanceof RangeError ? TOO_DEEP : "The document is not YAML");
  }
  for (const { code, pos } of [...(document?.errors ?? []), ...(document?.warnings ?? [])]) {
    survey.report(SYNTAX[code] ?? "The text is not YAML here", [], pos[0]);
  }
  const root: Node | null = json ?? document?.contents ?? null;
  if (root === null && survey.issues.length === 0) return refuse("The document is empty");
  yield;
  // Strict JSON has already been surveyed.
  if (json === undefined) yield* survey.rootSteps(root);
  return {
    root: survey.isTooDeep ? undefined : (root ?? undefined),
    issues: survey.issues,
    unlisted: survey.unlisted,
    isBroken: document?.errors.some(({ code }) => code !== "TAG_RESOLVE_FAILED") ?? json === undefined,
    resolve: (node) => (isAlias(node) ? survey.targets.get(node) : asNode(node)),
    position,
  };
}

/** Members of a section such as `routes` per step of about 10 ms. */
export const MEMBERS_OF_A_STEP = 1000;
/** Lexemes per step of about 10 ms. */
const LEXEMES_OF_A_STEP = 15_000;

function noteLines(text: string, lines: LineCounter): void {
  for (let at = 0; at !== 0 || lines.lineStarts.length === 0; at = text.indexOf("\n", at) + 1) lines.addNewLine(at);
}

function* composed(text: string, lines: LineCounter, survey: Survey): Steps<Document.Parsed | undefined> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const tokens: CST.Token[] = [];
  const bounds = new Bounds();
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      bounds.add(token);
    }
    const excess = bounds.excess(parser.stack);
    if (excess !== undefined) {
      survey.report(excess, [], parser.offset - lexeme.length);
      return undefined;
    }
    if (bounds.documents > 1) break;
    if (++count % LEXEMES_OF_A_STEP === 0) yield;
  }
  tokens.push(...parser.end());
  yield;
  const [first, second] = yield* composedInSteps(tokens, YAML_OPTIONS, MEMBERS_OF_A_STEP, text.length);
  if (second !== undefined) survey.report(SYNTAX.MULTIPLE_DOCS ?? "", [], second.range[0]);
  return first;
}

/** Limits that abort reading early, since composing such a text blocks for seconds and cannot succeed. */
class Bounds {
  documents = 0;
  #mistakes = 0;

  /** Counts a complete token at the root. */
  add({ type }: CST.Token): void {
    if (type === "document") this.documents += 1;
    if (type === "error" || type === "directive") this.#mistakes += 1;
  }

  /** The message for an exceeded limit; `stack` holds the document and nested collections being parsed. */
  excess(stack: readonly CST.Token[]): string | undefined {
    // The stack also holds the document and a scalar; the exact limit is checked after parsing.
    if (stack.length > DEEPEST + 8) return TOO_DEEP;
    if (this.#mistakes > MAX_ISSUES) return TOO_MANY_MISTAKES;
    const inner = stack.at(-1);
    const isMapping = inner?.type === "block-map" || (inner?.type === "flow-collection" && inner.start.source === "{");
    return isMapping && inner.items.length > MAX_KEYS ? TOO_MANY_KEYS : undefined;
  }
}

/** The YAML 1.2 core schema only: no merge keys or type tags. */
export const YAML_OPTIONS = {
  version: "1.2",
  schema: "core",
  customTags: null,
  resolveKnownTags: false,
  merge: false,
  intAsBigInt: true,
  // The parser's duplicate search is quadratic.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "error",
} as const;

function asNode(value: unknown): Node | undefined {
  return isScalar(value) || isCollection(value) ? value : undefined;
}

/** The text of a key; undefined for a non-text key. */
export function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  if (typeof key.value === "string") return key.value;
  return key.value === null ? undefined : key.source;
}

export function offsetOf(node: unknown): number | undefined {
  return isScalar(node) || isCollection(node) || isAlias(node) ? node.range?.[0] : undefined;
}

/** One walk over the tree: resolves aliases, finds duplicate keys, checks depth. */
class Survey {
  readonly issues: Issue[] = [];
  unlisted = 0;
  readonly targets = new Map<Alias, Node>();
  isTooDeep = false;
  readonly #anchors = new Map<string, Node>();
  readonly #position: YamlSource["position"];

  constructor(position: YamlSource["position"]) {
    this.#position = position;
  }

  report(message: string, fieldPath: FieldPath, offset: number | undefined): void {
    if (this.issues.length >= MAX_ISSUES) {
      this.unlisted += 1;
      return;
    }
    this.issues.push({
      code: "syntax",
      path: pointer(fieldPath),
      message,
      severity: "error",
      ...(offset === undefined ? {} : this.#position(offset)),
    });
  }

  /** Walks from the root; lists directly below it are walked in steps. */
  *rootSteps(root: Node | null): Steps<void> {
    if (!isMap(root)) return this.visit(root, [], 0);
    if (root.anchor !== undefined) this.#anchors.set(root.anchor, root);
    const seen = new Set<string>();
    const fieldPath: (string | number)[] = [];
    for (const pair of root.items) {
      const key = this.#keyOf(pair, root, fieldPath, seen);
      if (key === undefined) continue;
      const { value } = pair;
      if (!isSeq(value)) {
        this.#visitMember(value, fieldPath, key, 1);
        continue;
      }
      if (value.anchor !== undefined) this.#anchors.set(value.anchor, value);
      fieldPath.push(key);
      for (const [at, item] of value.items.entries()) {
        this.#visitMember(item, fieldPath, at, 2);
        if (at % MEMBERS_OF_A_STEP === MEMBERS_OF_A_STEP - 1) yield;
      }
      fieldPath.pop();
    }
  }

  #visitMember(node: unknown, fieldPath: (string | number)[], step: string | number, depth: number): void {
    fieldPath.push(step);
    this.visit(node, fieldPath, depth);
    fieldPath.pop();
  }

  /** `place` is the current path, shared and mutated. */
  visit(node: unknown, fieldPath: (string | number)[], depth: number): void {
    if (depth > DEEPEST) {
      if (!this.isTooDeep) this.report(TOO_DEEP, fieldPath, offsetOf(node));
      this.isTooDeep = true;
      return;
    }
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      if (target === undefined) {
        this.report("The alias names an anchor that does not exist before it", fieldPath, offsetOf(node));
      } else this.targets.set(node, target);
      return;
    }
    if (!isScalar(node) && !isCollection(node)) return;
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (isMap(node)) this.#visitMap(node, fieldPath, depth);
    else if (isCollection(node)) {
      node.items.forEach((item, at) => this.#visitMember(item, fieldPath, at, depth + 1));
    }
  }

  #visitMap(map: YAMLMap, fieldPath: (string | number)[], depth: number): void {
    const seen = new Set<string>();
    for (const pair of map.items) {
      const key = this.#keyOf(pair, map, fieldPath, seen);
      if (key !== undefined) this.#visitMember(pair.value, fieldPath, key, depth + 1);
    }
  }

  /** The key of a pair; undefined if invalid. */
  #keyOf(pair: Pair, map: YAMLMap, fieldPath: FieldPath, seen: Set<string>): string | undefined {
    if (!isPair(pair)) return undefined;
    if (isScalar(pair.key) && pair.key.anchor !== undefined) this.#anchors.set(pair.key.anchor, pair.key);
    const key = keyText(pair.key);
    if (key === undefined) {
      this.report("Keys have to be texts", fieldPath, offsetOf(pair.key) ?? offsetOf(map));
      return undefined;
    }
    if (seen.has(key)) {
      this.report(`"${key}" occurs twice in the same mapping`, [...fieldPath, key], offsetOf(pair.key));
    }
    seen.add(key);
    return key;
  }
}

type ListToken = CST.BlockSequence | CST.FlowCollection;
type ListItems = ListToken["items"];
type ComposerOptions = ParseOptions & DocumentOptions & SchemaOptions;

/** Members removed from a list before its document was composed. */
interface Beginning {
  /** The list's token with its last members, which determine the end offset. */
  readonly list: ListToken;
  readonly parts: readonly ListItems[];
}

/**
 * Composes tokens to documents. Lists directly below the first root, which dominate large configurations, are composed
 * `membersOfAStep` at a time. The result equals that of the library. Consumes the tokens.
 */
export function* composedInSteps(
  tokens: readonly CST.Token[],
  options: ComposerOptions,
  membersOfAStep: number,
  endOffset: number,
): Steps<Document.Parsed[]> {
  const first = tokens.find((token) => token.type === "document");
  // Directives would apply to every part.
  const isPlain = first !== undefined && !tokens.some((token) => token.type === "directive");
  const cutOff = isPlain ? cutLists(first, membersOfAStep) : [];
  const documents = [...new Composer(options).compose(tokens, true, endOffset)];
  const [document] = documents;
  if (document !== undefined) for (const beginning of cutOff) yield* join(document, beginning, options);
  return documents;
}

function cutLists(document: CST.Document, membersOfAStep: number): Beginning[] {
  const root = document.value;
  if (root?.type !== "block-map" && !isFlow(root, "{")) return [];
  const cutOff: Beginning[] = [];
  for (const { value } of root.items) {
    if (value?.type !== "block-seq" && !isFlow(value, "[")) continue;
    const parts = cut(value, membersOfAStep);
    if (parts.length > 0) cutOff.push({ list: value, parts });
  }
  return cutOff;
}

function isFlow(token: CST.Token | null | undefined, bracket: "[" | "{"): token is CST.FlowCollection {
  return token?.type === "flow-collection" && token.start.source === bracket;
}

/** Truncates a list to its last members; returns the preceding ones in parts. */
function cut(list: ListToken, membersOfAStep: number): ListItems[] {
  const parts: ListItems[] = [];
  let from = 0;
  for (let at = membersOfAStep; at < list.items.length; at += 1) {
    if (at - from < membersOfAStep || !isIndependent(list, list.items[at])) continue;
    parts.push(list.items.slice(from, at));
    from = at;
  }
  if (from === 0) return parts;
  list.items.splice(0, from);
  // A comma separates a member from its predecessor.
  if (list.type === "flow-collection") for (const [first] of [...parts.slice(1), list.items]) first?.start.shift();
  return parts;
}

/** True if the library composes an item the same without its predecessors. */
function isIndependent(list: ListToken, item: CST.CollectionItem | undefined): boolean {
  if (item?.value === undefined) return false;
  if (list.type === "block-seq") return item.start.some(({ type }) => type === "seq-item-ind");
  return item.start[0]?.type === "comma" && item.sep === undefined;
}

function* join(document: Document.Parsed, { list, parts }: Beginning, options: ComposerOptions): Steps<void> {
  const whole = listAt(document, list.offset);
  const members: Node[] = [];
  for (const items of parts) {
    yield;
    const [part] = new Composer(options).compose([documentOf(list, items)]);
    document.errors.push(...(part?.errors ?? []));
    document.warnings.push(...(part?.warnings ?? []));
    if (isSeq<Node>(part?.contents)) for (const member of part.contents.items) members.push(member);
  }
  if (whole !== undefined) whole.items = members.concat(whole.items);
}

function listAt({ contents }: Document.Parsed, offset: number): YAMLSeq<Node> | undefined {
  if (!isMap(contents)) return undefined;
  for (const { value } of contents.items) if (isSeq<Node>(value) && value.range?.[0] === offset) return value;
  return undefined;
}

/** A document that contains only this part of a list. */
function documentOf(list: ListToken, items: ListItems): CST.Document {
  const { offset, indent } = list;
  const close: CST.SourceToken = { type: "flow-seq-end", offset, indent, source: "]" };
  const value = (list.type === "block-seq" ? { ...list, items } : { ...list, items, end: [close] }) as ListToken;
  return { type: "document", offset, start: [], value };
}
