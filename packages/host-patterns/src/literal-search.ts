/**
 * Finds which of many literal texts occur in a text, in one pass whatever their number (Aho and Corasick, 1975).
 * Each literal carries a number; several literals may be equal.
 */
export class LiteralSearch {
  /** Transitions; the key is `node * 65536 + char code`. */
  readonly #next = new Map<number, number>();
  readonly #fallback: number[] = [0];
  /** Numbers of the literals that end at a node. */
  readonly #found: number[][] = [[]];
  /** The nearest node along the fallbacks at which a literal ends, or 0. */
  readonly #alsoFound: number[] = [0];

  constructor(literals: Iterable<readonly [literal: string, number: number]>) {
    for (const [literal, number] of literals) this.#add(literal, number);
    this.#link();
  }

  #add(literal: string, number: number): void {
    let node = 0;
    for (let index = 0; index < literal.length; index += 1) {
      const key = node * 65536 + literal.charCodeAt(index);
      let child = this.#next.get(key);
      if (child === undefined) {
        child = this.#fallback.push(0) - 1;
        this.#found.push([]);
        this.#alsoFound.push(0);
        this.#next.set(key, child);
      }
      node = child;
    }
    this.#found[node]?.push(number);
  }

  /** Sets fallbacks level by level; a child's needs those of all shallower nodes. */
  #link(): void {
    const edges = new Map<number, [code: number, child: number][]>();
    for (const [key, child] of this.#next) {
      const node = Math.floor(key / 65536);
      const list = edges.get(node);
      if (list === undefined) edges.set(node, [[key % 65536, child]]);
      else list.push([key % 65536, child]);
    }
    const queue = [0];
    for (const node of queue) {
      for (const [code, child] of edges.get(node) ?? []) {
        const fallback = node === 0 ? 0 : this.#step(this.#fallback[node] ?? 0, code);
        this.#fallback[child] = fallback;
        this.#alsoFound[child] = (this.#found[fallback] ?? []).length > 0 ? fallback : (this.#alsoFound[fallback] ?? 0);
        queue.push(child);
      }
    }
  }

  #step(from: number, code: number): number {
    for (let node = from; ; node = this.#fallback[node] ?? 0) {
      const child = this.#next.get(node * 65536 + code);
      if (child !== undefined) return child;
      if (node === 0) return 0;
    }
  }

  /** Calls `onFound` once with the number of each literal that occurs in `text`, in the order they end. */
  search(text: string, onFound: (number: number) => void): void {
    let reported: Set<number> | undefined;
    let node = 0;
    for (let index = 0; index < text.length; index += 1) {
      node = this.#step(node, text.charCodeAt(index));
      const isEnd = (this.#found[node] ?? []).length > 0;
      for (let at = isEnd ? node : (this.#alsoFound[node] ?? 0); at !== 0; at = this.#alsoFound[at] ?? 0) {
        reported ??= new Set();
        // What follows along the fallbacks was reported together with this node.
        if (reported.has(at)) break;
        reported.add(at);
        for (const number of this.#found[at] ?? []) onFound(number);
      }
    }
  }
}
