import { multipartBoundary, parseMultipart } from "@headworks/http-fields";
import { BodyDocument, type BodyProgress, type BodyLocation } from "./body-document.ts";
import { JsonTree } from "./json-tree.ts";
import type { RowMatch, TextRow } from "./text-layer.ts";
import { searchBytes, type SearchQuery } from "./text-search.ts";
import { type TreeRow, TreeRows } from "./tree-rows.ts";

const MAX_COLUMNS = 60;

/** Number of rows read to determine the columns. */
const SAMPLE_ROWS = 300;
const CELL_BYTES = 200;

/** An array of a JSON document as rows and columns. */
export class JsonTable {
  readonly tree: JsonTree;
  readonly node: number;
  readonly columns: readonly string[];
  readonly #rows: readonly number[];

  constructor(tree: JsonTree, node: number) {
    this.tree = tree;
    this.node = node;
    this.#rows = tree.children(node);
    const columns = new Set<string>();
    for (const row of this.#rows.slice(0, SAMPLE_ROWS)) {
      if (tree.kind(row) !== "object") columns.add("value");
      else for (const cell of tree.children(row, MAX_COLUMNS)) columns.add(tree.key(cell) ?? "");
      if (columns.size >= MAX_COLUMNS) break;
    }
    this.columns = [...columns].slice(0, MAX_COLUMNS);
  }

  get length(): number {
    return this.#rows.length;
  }

  /** The rows `[from, to)`. */
  rows(from: number, to: number): TableRow[] {
    return this.#rows.slice(Math.max(0, from), Math.max(0, to)).map((row, index) => ({
      position: Math.max(0, from) + index,
      cells: this.#cells(row),
    }));
  }

  #cells(row: number): (TableCell | null)[] {
    const { tree } = this;
    const cell = (node: number): TableCell => ({ text: tree.text(node, CELL_BYTES), kind: tree.kind(node) });
    if (tree.kind(row) !== "object") return this.columns.map((name) => (name === "value" ? cell(row) : null));
    const byKey = new Map(tree.children(row).map((node) => [tree.key(node) ?? "", node]));
    return this.columns.map((name) => {
      const node = byKey.get(name);
      return node === undefined ? null : cell(node);
    });
  }
}

export type LayerName = "raw" | "pretty";

/** Longer text is never transferred as one string. */
const WHOLE_TEXT_BYTES = 1_048_576;
const PART_PREVIEW_BYTES = 2000;

export interface FoundMatches {
  readonly matches: readonly RowMatch[];
  readonly more: boolean;
}

export interface PartPreview {
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly name: string | null;
  readonly filename: string | null;
  readonly contentType: string | null;
  /** `[start, end)` of the content in the body. */
  readonly start: number;
  readonly end: number;
  /** The beginning as text; null for binary data. */
  readonly preview: string | null;
}

/** Calls of the page to the worker that holds a body. Each reply is bounded, whatever the size of the body. */
export interface BodyCalls {
  rows(layer: LayerName, from: number, to: number): readonly TextRow[];
  /** Wraps lines at a width in characters; null disables wrapping. The new row counts are sent as progress. */
  wrap(columns: number | null): void;
  /** The whole text once loaded, if small; otherwise null. */
  text(layer: LayerName): Promise<string | null>;
  search(layer: LayerName, query: SearchQuery): FoundMatches;
  loadRest(): Promise<void>;
  openTree(): number;
  treeRows(from: number, to: number): readonly TreeRow[];
  toggleNode(node: number): number;
  expandNode(node: number): { readonly rows: number; readonly complete: boolean };
  collapseTree(): number;
  nodePath(node: number): string;
  /** The node's value as sent; null above the size limit. */
  nodeValue(node: number): string | null;
  tables(): readonly { readonly node: number; readonly path: string; readonly count: number }[];
  openTable(node: number): { readonly columns: readonly string[]; readonly rows: number };
  tableRows(from: number, to: number): readonly TableRow[];
  parts(contentType: string): { readonly parts: readonly PartPreview[]; readonly problem: string | null };
  /** A copy of `[start, end)` of the raw bytes. */
  bytes(start: number, end: number): Uint8Array<ArrayBuffer>;
}

export type BodyCallName = keyof BodyCalls;

export type WorkerRequest =
  | { readonly kind: "open"; readonly source: BodyLocation }
  | {
      readonly kind: "call";
      readonly id: number;
      readonly name: BodyCallName;
      readonly parameters: readonly unknown[];
    };

export type WorkerResponse =
  | { readonly kind: "progress"; readonly progress: BodyProgress }
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly message: string };

class BodyWorkerClient implements BodyCalls {
  readonly #document: BodyDocument;
  #tree: TreeRows | null = null;
  #table: JsonTable | null = null;

  constructor(document: BodyDocument) {
    this.#document = document;
  }

  rows(layer: LayerName, from: number, to: number) {
    return this.#layer(layer).window(from, Math.min(to, from + 2000));
  }

  wrap(columns: number | null) {
    this.#document.wrapAt(columns);
  }

  async text(layer: LayerName) {
    await this.#document.loadRest();
    return this.#layer(layer).text(WHOLE_TEXT_BYTES);
  }

  search(layer: LayerName, query: SearchQuery) {
    const text = this.#layer(layer);
    const result = searchBytes(text.bytes, query);
    return { matches: text.locate(result), more: result.more };
  }

  async loadRest() {
    await this.#document.loadRest();
  }

  openTree() {
    return this.#treeRows().length;
  }

  treeRows(from: number, to: number) {
    return this.#treeRows().rows(from, Math.min(to, from + 2000));
  }

  toggleNode(node: number) {
    const rows = this.#treeRows();
    rows.toggle(node);
    return rows.length;
  }

  expandNode(node: number) {
    const rows = this.#treeRows();
    return { complete: rows.expandAll(node), rows: rows.length };
  }

  collapseTree() {
    const rows = this.#treeRows();
    rows.collapseAll();
    return rows.length;
  }

  nodePath(node: number) {
    return this.#treeRows().tree.path(node);
  }

  nodeValue(node: number) {
    const { tree } = this.#treeRows();
    if (tree.size(node) > WHOLE_TEXT_BYTES) return null;
    return tree.text(node);
  }

  tables() {
    return tableCandidates(this.#treeRows().tree);
  }

  openTable(node: number) {
    this.#table = new JsonTable(this.#treeRows().tree, node);
    return { columns: this.#table.columns, rows: this.#table.length };
  }

  tableRows(from: number, to: number) {
    return this.#table?.rows(from, Math.min(to, from + 1000)) ?? [];
  }

  parts(contentType: string) {
    const { bytes } = this.#document.raw;
    const boundary = multipartBoundary(contentType);
    if (boundary === undefined) return { parts: [], problem: "The Content-Type has no valid boundary" };
    const multipart = parseMultipart(bytes, boundary);
    if (multipart === undefined) return { parts: [], problem: "The boundary does not occur in the body" };
    const parts = multipart.parts.map(({ body, headers, name, filename, contentType: type }): PartPreview => ({
      headers,
      name: name ?? null,
      filename: filename ?? null,
      contentType: type ?? null,
      start: body.byteOffset - bytes.byteOffset,
      end: body.byteOffset - bytes.byteOffset + body.length,
      preview: previewOf(body),
    }));
    return {
      parts,
      problem: multipart.isComplete ? null : "The body ends before its last part, or has too many parts",
    };
  }

  bytes(start: number, end: number) {
    return this.#document.raw.bytes.slice(start, end);
  }

  #layer(name: LayerName) {
    const { raw, pretty } = this.#document;
    return name === "pretty" ? (pretty ?? raw) : raw;
  }

  #treeRows(): TreeRows {
    this.#tree ??= new TreeRows(JsonTree.parse(this.#document.raw.bytes));
    return this.#tree;
  }
}

function previewOf(body: Uint8Array): string | null {
  const beginning = body.subarray(0, PART_PREVIEW_BYTES);
  for (const byte of beginning) if (byte < 9 || (byte > 13 && byte < 32)) return null;
  return new TextDecoder().decode(beginning);
}

/** Connects a body to the messages of a worker: call the result with each message of the page. */
export function serveBody(post: (response: WorkerResponse) => void, fetchBody?: typeof fetch) {
  let client: BodyWorkerClient | null = null;
  return async (request: WorkerRequest): Promise<void> => {
    if (request.kind === "open") {
      const document = new BodyDocument(request.source, (progress) => post({ kind: "progress", progress }), fetchBody);
      client = new BodyWorkerClient(document);
      await document.open();
      return;
    }
    try {
      if (client === null) throw new Error("No body open");
      const call = client[request.name].bind(client) as (...parameters: readonly unknown[]) => unknown;
      post({ kind: "result", id: request.id, value: await call(...request.parameters) });
    } catch (error) {
      post({ kind: "failure", id: request.id, message: error instanceof Error ? error.message : String(error) });
    }
  };
}

/** A cell, truncated for display; null if the row lacks the member. */
interface TableCell {
  readonly text: string;
  readonly kind: string;
}

interface TableRow {
  readonly position: number;
  readonly cells: readonly (TableCell | null)[];
}

/** Arrays suitable for a table, largest first: arrays whose first item is an object, at most three levels deep. */
export function tableCandidates(
  tree: JsonTree,
): { readonly node: number; readonly path: string; readonly count: number }[] {
  const found: number[] = [];
  const visit = (node: number, depth: number): void => {
    if (tree.kind(node) === "array" && tree.count(node) > 0 && tree.kind(node + 1) === "object") found.push(node);
    else if (depth < 3) for (const child of tree.children(node, 200)) visit(child, depth + 1);
  };
  if (tree.length > 0) visit(0, 0);
  return found
    .toSorted((a, b) => tree.count(b) - tree.count(a))
    .slice(0, 20)
    .map((node) => ({ node, path: tree.path(node), count: tree.count(node) }));
}
