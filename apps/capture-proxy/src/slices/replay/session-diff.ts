import {
  type EntryDiff,
  SESSION_DIFF_LIMITS,
  type SessionDiff,
  type SessionDiffOrder,
  type SessionDiffPair,
  type SessionDiffRow,
  type TrafficSnapshot,
} from "@headworks/capture-contract";
import { compileHeaderNames, isBodySame } from "@headworks/entry-diff";
import { parseQuery as parseParameters } from "@headworks/http-fields";
import { parseQuery } from "@headworks/query-language";
import { notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { compareInWorker } from "./compare-in-worker.ts";
import { checkDiffOptions, sideOf } from "./diff.ts";

const DEFAULT_COMPARISONS = 1000;
const WINDOW = 1000;

type Host = Pick<SliceHost, "store" | "clock">;

/**
 * Compares the requests and responses of two sessions. Throws 404 for an unknown session, and 400 for one with too many
 * entries. Stops when the caller disconnects.
 */
export async function diffOfSessions(host: Host, order: SessionDiffOrder, signal: AbortSignal): Promise<SessionDiff> {
  checkDiffOptions(order, "body");
  checkQuery(order.q);
  await host.store.flush();
  const left = await rowsOf(host, order, "left", signal);
  const right = await rowsOf(host, order, "right", signal);
  const isIgnored = compileHeaderNames(order.ignore_query ?? []);
  const { pairs, onlyLeft, onlyRight } = pairRequests(left, right, (name) => isIgnored(name.toLowerCase()));
  const compared = pairs.slice(0, order.limit ?? DEFAULT_COMPARISONS);
  const changed: SessionDiffPair[] = [];
  for (const pair of compared) {
    signal.throwIfAborted();
    const differs = await differencesOf(host, pair, order);
    if (differs.length > 0) changed.push({ left: pair.left, right: pair.right, differs });
  }
  const isComplete = compared.length === pairs.length;
  return {
    same: isComplete && changed.length === 0 && onlyLeft.length === 0 && onlyRight.length === 0,
    left_id: order.left,
    right_id: order.right,
    left_count: left.length,
    right_count: right.length,
    pair_count: pairs.length,
    same_count: compared.length - changed.length,
    changed_count: changed.length,
    not_compared_count: pairs.length - compared.length,
    only_left_count: onlyLeft.length,
    only_right_count: onlyRight.length,
    changed: changed.slice(0, SESSION_DIFF_LIMITS.rows),
    only_left: onlyLeft.slice(0, SESSION_DIFF_LIMITS.rows),
    only_right: onlyRight.slice(0, SESSION_DIFF_LIMITS.rows),
  };
}

function checkQuery(q: string | undefined): void {
  const parsed = q === undefined ? undefined : parseQuery(q);
  if (parsed === undefined || parsed.ok) return;
  const { message, start } = parsed.error;
  throw validationError([{ path: "body/q", message: `${message} (at character ${start + 1})` }]);
}

async function rowsOf(
  { store }: Host,
  order: SessionDiffOrder,
  side: "left" | "right",
  signal: AbortSignal,
): Promise<SessionDiffRow[]> {
  const sessionId = order[side];
  if ((await store.getSession(sessionId)) === undefined) return notFound("session", sessionId);
  const filter = { session_id: sessionId, ...(order.q === undefined ? {} : { q: order.q }) };
  const rows: SessionDiffRow[] = [];
  for (let offset = 0; ; offset += WINDOW) {
    const { json } = await store.listRows({ filter, sort: "seq", order: "asc", offset, limit: WINDOW }, signal);
    const page = (JSON.parse(Buffer.from(json).toString("utf8")) as { rows: TrafficSnapshot[] }).rows;
    for (const row of page) if (row.state !== "pending") rows.push(shown(row));
    if (rows.length > SESSION_DIFF_LIMITS.entries) {
      const message = `this session has more than ${SESSION_DIFF_LIMITS.entries} such entries; narrow them by q`;
      throw validationError([{ path: `body/${side}`, message }]);
    }
    if (page.length < WINDOW) return rows;
  }
}

function shown({ id, method, url, status_code, failure_code, duration_ms }: TrafficSnapshot): SessionDiffRow {
  return { id, method, url, status_code, failure_code, duration_ms };
}

async function differencesOf(
  { store, clock }: Host,
  { left, right }: { readonly left: SessionDiffRow; readonly right: SessionDiffRow },
  options: SessionDiffOrder,
): Promise<SessionDiffPair["differs"]> {
  const diff = await compareInWorker(clock, {
    left: await sideOf(store, undefined, left.id),
    right: await sideOf(store, undefined, right.id),
    options,
  });
  return namesOf(diff);
}

function namesOf(diff: EntryDiff): SessionDiffPair["differs"] {
  const names: SessionDiffPair["differs"] = [];
  if (diff.status !== null) names.push("status");
  if (diff.failure !== null) names.push("failure");
  if (diff.response_headers.changed.length > 0) names.push("headers");
  if (!isBodySame(diff.response_body)) names.push("body");
  // URLs are equal: requests are paired by them.
  if (diff.request_headers.changed.length > 0 || !isBodySame(diff.request_body)) names.push("request");
  return names;
}

interface PairedRequest {
  readonly method: string;
  readonly url: string;
}

/** Pairs, and unpaired requests of each side in their order. */
interface Pairing<T> {
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
  const parameters = parseParameters(url.slice(mark)).filter(({ name }) => !ignoresParameter(name));
  const texts = parameters.map(({ name, value }) => JSON.stringify([name, value]));
  return `${method} ${url.slice(0, mark)}?${texts.toSorted().join("&")}`;
}
