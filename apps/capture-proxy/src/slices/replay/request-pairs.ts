import { parseQuery } from "@headworks/http-fields";

export interface PairedRequest {
  readonly method: string;
  readonly url: string;
}

/** Pairs, and unpaired requests of each side in their order. */
export interface Pairing<T> {
  readonly pairs: readonly { readonly left: T; readonly right: T }[];
  readonly onlyLeft: readonly T[];
  readonly onlyRight: readonly T[];
}

/**
 * Pairs the n-th request of a method and URL on the left with the n-th on the right. The order of query parameters does
 * not count; parameters for which `ignoresParameter` holds are left out.
 */
export function pairRequests<T extends PairedRequest>(
  left: readonly T[],
  right: readonly T[],
  ignoresParameter: (name: string) => boolean,
): Pairing<T> {
  const waiting = new Map<string, T[]>();
  for (const one of right) {
    const key = keyOf(one, ignoresParameter);
    const known = waiting.get(key);
    if (known === undefined) waiting.set(key, [one]);
    else known.push(one);
  }
  const next = new Map<string, number>();
  const taken = new Set<T>();
  const pairs: { left: T; right: T }[] = [];
  const onlyLeft: T[] = [];
  for (const one of left) {
    const key = keyOf(one, ignoresParameter);
    const at = next.get(key) ?? 0;
    const partner = waiting.get(key)?.[at];
    if (partner === undefined) {
      onlyLeft.push(one);
      continue;
    }
    next.set(key, at + 1);
    taken.add(partner);
    pairs.push({ left: one, right: partner });
  }
  return { pairs, onlyLeft, onlyRight: right.filter((one) => !taken.has(one)) };
}

function keyOf({ method, url }: PairedRequest, ignoresParameter: (name: string) => boolean): string {
  const mark = url.indexOf("?");
  if (mark === -1) return `${method} ${url}`;
  const parameters = parseQuery(url.slice(mark)).filter(({ name }) => !ignoresParameter(name));
  const texts = parameters.map(({ name, value }) => JSON.stringify([name, value]));
  return `${method} ${url.slice(0, mark)}?${texts.toSorted().join("&")}`;
}
