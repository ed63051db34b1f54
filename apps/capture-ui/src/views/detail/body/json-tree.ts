import { NumberList } from "./byte-store.ts";

const NODE_KINDS = ["object", "array", "string", "number", "true", "false", "null"] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

/** Node limit; this many need about 200 MB. */
const MAX_NODES = 6_000_000;
const SPACES = new Set([0x20, 0x0a, 0x0d, 0x09]);
const decoder = new TextDecoder();

/** Reason why a text has no tree. */
export class JsonTreeError extends Error {}

/**
 * The structure of a JSON text as columns of numbers: nodes in document order, each with its position in the text, its
 * parent and the node after its subtree. Values stay in the text and are decoded on display.
 */
export class JsonTree {
  readonly bytes: Uint8Array;
  readonly #kind = new NumberList();
  readonly #start = new NumberList();
  readonly #end = new NumberList();
  readonly #key = new NumberList();
  readonly #parent = new NumberList();
  readonly #next = new NumberList();
  readonly #count = new NumberList();

  private constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Parses a text; throws {@link JsonTreeError}. Several values become children of a synthetic array. */
  static parse(bytes: Uint8Array): JsonTree {
    const tree = new JsonTree(bytes);
    tree.#read();
    return tree;
  }

  get length(): number {
    return this.#kind.length;
  }

  kind(node: number): NodeKind {
    return NODE_KINDS[this.#kind.at(node)] ?? "null";
  }

  isContainer(node: number): boolean {
    return this.#kind.at(node) <= 1;
  }

  count(node: number): number {
    return this.#count.at(node);
  }

  /** The parent; the root is its own parent. */
  parent(node: number): number {
    return this.#parent.at(node);
  }

  /** The node after the whole subtree. */
  next(node: number): number {
    return this.#next.at(node);
  }

  /** The decoded key in an object; null in arrays and at the root. */
  key(node: number): string | null {
    const at = this.#key.at(node);
    return at === 0 ? null : decodeString(this.bytes, at - 1, stringEnd(this.bytes, at - 1));
  }

  source(node: number, maxBytes = Infinity): string {
    const start = this.#start.at(node);
    return decoder.decode(this.bytes.subarray(start, Math.min(this.#end.at(node), start + maxBytes)));
  }

  size(node: number): number {
    return this.#end.at(node) - this.#start.at(node);
  }

  /** The value of a node for display: strings decoded, others as sent; truncated to `maxBytes`. */
  text(node: number, maxBytes = Infinity): string {
    if (this.kind(node) !== "string") return this.source(node, maxBytes);
    const start = this.#start.at(node);
    const end = this.#end.at(node);
    return decodeString(this.bytes, start, Math.min(end, start + maxBytes));
  }

  position(node: number): number {
    let position = 0;
    for (let sibling = this.parent(node) + 1; sibling < node; sibling = this.next(sibling)) position++;
    return position;
  }

  /** A JSONPath: `$.items[0]["odd key"]`. */
  path(node: number): string {
    const steps: string[] = [];
    for (let at = node; at !== 0; at = this.parent(at)) {
      const key = this.key(at);
      if (key === null) steps.push(`[${this.position(at)}]`);
      else steps.push(/^[A-Za-z_$][\w$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
    }
    return `$${steps.toReversed().join("")}`;
  }

  children(node: number, limit = Infinity): number[] {
    const found: number[] = [];
    if (!this.isContainer(node)) return found;
    for (let at = node + 1; at < this.next(node) && found.length < limit; at = this.next(at)) found.push(at);
    return found;
  }

  #add(kind: number, start: number, key: number, parent: number): number {
    if (this.length >= MAX_NODES) throw new JsonTreeError(`More than ${MAX_NODES.toLocaleString("en")} values`);
    const node = this.length;
    this.#kind.push(kind);
    this.#start.push(start);
    this.#end.push(start);
    this.#key.push(key);
    this.#parent.push(parent);
    this.#next.push(node + 1);
    this.#count.push(0);
    return node;
  }

  #close(node: number, end: number): void {
    this.#end.set(node, end);
    this.#next.set(node, this.length);
  }

  #read(): void {
    const { bytes } = this;
    let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    at = skipSpaces(bytes, at);
    if (skipSpaces(bytes, this.#value(at, 0, 0)) >= bytes.length) return;
    // Parsed again below a synthetic array: node numbers start after it.
    for (const list of this.#columns()) list.clear();
    const root = this.#add(1, 0, 0, 0);
    while (at < bytes.length) {
      at = skipSpaces(bytes, this.#value(at, 0, root));
      this.#count.set(root, this.#count.at(root) + 1);
    }
    this.#close(root, bytes.length);
  }

  #columns(): NumberList[] {
    return [this.#kind, this.#start, this.#end, this.#key, this.#parent, this.#next, this.#count];
  }

  /** Parses one value with all descendants; returns the offset after it. */
  #value(from: number, firstKey: number, firstParent: number): number {
    const { bytes } = this;
    const open: number[] = [];
    let at = from;
    let key = firstKey;
    for (;;) {
      const parent = open.at(-1) ?? firstParent;
      const byte = bytes[at];
      if (byte === 0x7b || byte === 0x5b) {
        const node = this.#add(byte === 0x7b ? 0 : 1, at, key, parent);
        at = skipSpaces(bytes, at + 1);
        if (bytes[at] === (byte === 0x7b ? 0x7d : 0x5d)) this.#close(node, ++at);
        else {
          open.push(node);
          if (byte === 0x7b) [key, at] = this.#keyAt(at);
          else key = 0;
          continue;
        }
      } else {
        at = this.#scalar(at, key, parent);
      }
      // The value is complete: count it, and close the containers that end here.
      for (;;) {
        const container = open.at(-1);
        if (container === undefined) return at;
        this.#count.set(container, this.#count.at(container) + 1);
        at = skipSpaces(bytes, at);
        const isObject = this.#kind.at(container) === 0;
        if (bytes[at] === 0x2c) {
          at = skipSpaces(bytes, at + 1);
          if (isObject) [key, at] = this.#keyAt(at);
          else key = 0;
          break;
        }
        if (bytes[at] !== (isObject ? 0x7d : 0x5d)) throw notJson(at);
        at++;
        this.#close(container, at);
        open.pop();
      }
    }
  }

  #keyAt(at: number): [key: number, at: number] {
    const { bytes } = this;
    if (bytes[at] !== 0x22) throw notJson(at);
    const after = skipSpaces(bytes, stringEnd(bytes, at));
    if (bytes[after] !== 0x3a) throw notJson(after);
    return [at + 1, skipSpaces(bytes, after + 1)];
  }

  #scalar(at: number, key: number, parent: number): number {
    const { bytes } = this;
    const byte = bytes[at];
    if (byte === 0x22) {
      const end = stringEnd(bytes, at);
      this.#close(this.#add(2, at, key, parent), end);
      return end;
    }
    let end = at;
    while (end < bytes.length && end - at < 400 && !isDelimiter(bytes[end] ?? 0)) end++;
    const text = decoder.decode(bytes.subarray(at, end));
    const kind = ["true", "false", "null"].indexOf(text);
    if (kind < 0 && !/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/u.test(text)) throw notJson(at);
    this.#close(this.#add(kind < 0 ? 3 : 4 + kind, at, key, parent), end);
    return end;
  }
}

function isDelimiter(byte: number): boolean {
  return SPACES.has(byte) || byte === 0x2c || byte === 0x5d || byte === 0x7d || byte === 0x3a;
}

function skipSpaces(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && SPACES.has(bytes[at] ?? 0)) at++;
  return at;
}

/** The offset after the string that starts at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === 0x5c) at++;
    else if (byte === 0x22) return at + 1;
    else if (byte < 0x20) throw notJson(at);
  }
  throw notJson(bytes.length);
}

function decodeString(bytes: Uint8Array, start: number, end: number): string {
  const raw = decoder.decode(bytes.subarray(start, end));
  try {
    const value: unknown = JSON.parse(raw);
    if (typeof value === "string") return value;
  } catch {
    // Truncated, or with an invalid escape: shown as sent.
  }
  return raw.replace(/^"/u, "").replace(/"$/u, "");
}

function notJson(at: number): JsonTreeError {
  return new JsonTreeError(`Not valid JSON from byte ${at.toLocaleString("en")}`);
}
