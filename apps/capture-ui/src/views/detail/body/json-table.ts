import type { JsonTree } from "./json-tree.ts";

/** A cell, cut for display; null where the row has no such member. */
export interface TableCell {
  readonly text: string;
  readonly kind: string;
}

export interface TableRow {
  readonly position: number;
  readonly cells: readonly (TableCell | null)[];
}

const MAX_COLUMNS = 60;
/** Rows that are read to find the columns. */
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

/** Arrays worth a table, largest first: arrays whose first item is an object, at most three levels down. */
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
