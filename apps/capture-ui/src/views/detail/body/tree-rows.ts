import { NumberList } from "./byte-store.ts";
import type { JsonTree, NodeKind } from "./json-tree.ts";

/** One visible line of the tree. */
export interface TreeRow {
  readonly node: number;
  readonly depth: number;
  /** Key in an object, index in an array, null for the root. */
  readonly label: string | null;
  readonly inArray: boolean;
  readonly kind: NodeKind;
  readonly count: number;
  readonly expanded: boolean;
  /** The truncated value, or a summary of a container. */
  readonly preview: string;
  readonly cut: boolean;
}

const PREVIEW_BYTES = 400;
const GLANCE_BYTES = 120;
/** Limit of "Expand all"; single nodes can still be expanded. */
const EXPAND_LIMIT = 100_000;

/** The expanded nodes of a tree, and the visible lines. */
export class TreeRows {
  readonly tree: JsonTree;
  readonly #expanded = new Set<number>();
  #nodes = new NumberList();
  #positions = new NumberList();
  #depths = new NumberList();

  constructor(tree: JsonTree) {
    this.tree = tree;
    if (tree.isContainer(0)) this.#expanded.add(0);
    if (tree.count(0) <= 20) {
      for (const child of tree.children(0, 20)) {
        if (tree.isContainer(child) && tree.count(child) <= 20) this.#expanded.add(child);
      }
    }
    this.#list();
  }

  get length(): number {
    return this.#nodes.length;
  }

  toggle(node: number): void {
    if (!this.#expanded.delete(node)) this.#expanded.add(node);
    this.#list();
  }

  /** Expands the ancestors of a node; returns the node's line. */
  reveal(node: number): number {
    for (let at = this.tree.parent(node); ; at = this.tree.parent(at)) {
      this.#expanded.add(at);
      if (at === 0) break;
    }
    this.#list();
    return this.#nodes.floorIndex(node);
  }

  /** Expands all descendants of a node, up to {@link EXPAND_LIMIT} lines in total. Returns whether all fitted. */
  expandAll(node: number): boolean {
    const end = this.tree.next(node);
    let lines = this.length;
    let complete = true;
    for (let at = node; at < end; at++) {
      if (!this.tree.isContainer(at) || this.#expanded.has(at)) continue;
      if (lines + this.tree.count(at) > EXPAND_LIMIT) {
        complete = false;
        break;
      }
      lines += this.tree.count(at);
      this.#expanded.add(at);
    }
    this.#list();
    return complete;
  }

  collapseAll(): void {
    this.#expanded.clear();
    if (this.tree.isContainer(0)) this.#expanded.add(0);
    this.#list();
  }

  rows(from: number, to: number): TreeRow[] {
    const found: TreeRow[] = [];
    for (let row = Math.max(0, from); row < Math.min(to, this.length); row++) found.push(this.#row(row));
    return found;
  }

  #row(row: number): TreeRow {
    const { tree } = this;
    const node = this.#nodes.at(row);
    const key = tree.key(node);
    const isContainer = tree.isContainer(node);
    const bytes = isContainer ? GLANCE_BYTES : PREVIEW_BYTES;
    return {
      node,
      depth: this.#depths.at(row),
      label: key ?? (node === 0 ? null : String(this.#positions.at(row))),
      inArray: node !== 0 && key === null,
      kind: tree.kind(node),
      count: tree.count(node),
      expanded: this.#expanded.has(node),
      preview: isContainer ? tree.source(node, bytes).replaceAll(/\s+/gu, " ") : tree.text(node, bytes),
      cut: tree.size(node) > bytes,
    };
  }

  #list(): void {
    const { tree } = this;
    const nodes = new NumberList();
    const positions = new NumberList();
    const depths = new NumberList();
    /** Ends of the open containers, and the positions reached in them. */
    const ends: number[] = [];
    const reached: number[] = [];
    for (let at = 0; at < tree.length;) {
      while (ends.length > 0 && at >= (ends.at(-1) ?? 0)) {
        ends.pop();
        reached.pop();
      }
      nodes.push(at);
      depths.push(ends.length);
      const last = reached.length - 1;
      positions.push(reached[last] ?? 0);
      if (last >= 0) reached[last] = (reached[last] ?? 0) + 1;
      if (tree.isContainer(at) && this.#expanded.has(at)) {
        ends.push(tree.next(at));
        reached.push(0);
        at++;
      } else {
        at = tree.next(at);
      }
    }
    this.#nodes = nodes;
    this.#positions = positions;
    this.#depths = depths;
  }
}
