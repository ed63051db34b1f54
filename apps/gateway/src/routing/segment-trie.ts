// Tested by path-index.test.ts
const SLASH = 0x2f;

/** No route. */
export const NONE = -1;

/** A place between two slashes: what may follow, and the route that ends here. */
export interface TrieNode {
  route: number;
  /** By hash of the segment, so that looking one up makes no string of it. */
  readonly branches: Map<number, Branch>;
  /** What follows whatever segment stands here. */
  parameter: TrieNode | undefined;
}

interface Branch {
  readonly segment: string;
  readonly node: TrieNode;
  /** Another segment with the same hash. */
  readonly other: Branch | undefined;
}

export function emptyNode(): TrieNode {
  return { route: NONE, branches: new Map(), parameter: undefined };
}

/** The hash of a segment is that of its units in order, beginning with 0; see {@link nextHash}. */
export function nextHash(hash: number, unit: number): number {
  return (Math.imul(hash, 31) + unit) | 0;
}

function hashOf(segment: string): number {
  let hash = 0;
  for (let at = 0; at < segment.length; at += 1) hash = nextHash(hash, segment.charCodeAt(at));
  return hash;
}

/** The node behind a static segment, made if it is not there yet. */
export function growBranch(node: TrieNode, segment: string): TrieNode {
  const hash = hashOf(segment);
  const known = branch(node, segment, 0, segment.length, hash);
  if (known !== undefined) return known;
  const grown = emptyNode();
  node.branches.set(hash, { segment, node: grown, other: node.branches.get(hash) });
  return grown;
}

/** The node behind a parameter, made if it is not there yet. */
export function growParameter(node: TrieNode): TrieNode {
  return (node.parameter ??= emptyNode());
}

/** The node behind the segment from `start` to `end` of the path; a hash alone proves nothing, clients choose it. */
export function branch(node: TrieNode, path: string, start: number, end: number, hash: number): TrieNode | undefined {
  for (let found = node.branches.get(hash); found !== undefined; found = found.other) {
    if (found.segment.length === end - start && path.startsWith(found.segment, start)) return found.node;
  }
  return undefined;
}

/** The route of the deepest node that the path passes at a segment boundary, or {@link NONE}. */
export function deepestRoute(root: TrieNode, path: string): number {
  let node = root;
  let route = root.route;
  let start = 1;
  let hash = 0;
  for (let at = 1; at <= path.length; at += 1) {
    const unit = at === path.length ? SLASH : path.charCodeAt(at);
    if (unit !== SLASH) {
      hash = nextHash(hash, unit);
      continue;
    }
    const next = branch(node, path, start, at, hash);
    if (next === undefined) return route;
    node = next;
    if (node.route !== NONE) route = node.route;
    start = at + 1;
    hash = 0;
  }
  return route;
}
