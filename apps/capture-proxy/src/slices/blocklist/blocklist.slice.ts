import { randomUUID } from "node:crypto";
import {
  BlockEntry,
  BlockEntryUpdate,
  type blocklistOperations,
  type NewBlockEntry,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { compileHostPatterns, validateHostPattern } from "@headworks/host-patterns";
import { notFound, validationError } from "#api/api-error.ts";
import { CONTINUE, type Interceptor, type SyntheticResponse } from "#exchange/phases.ts";
import { portableList } from "#portable/portable-list.ts";
import { createHitCounter, type HitCounter, RuleTable } from "#rules/rule-table.ts";
import type { Clock, Slice, SliceHost } from "#slice.ts";
import type { Database, SqlRow } from "#storage/database.ts";

/** Hosts whose requests get a response of the proxy. */
export function createBlocklistSlice(host: SliceHost): Slice<typeof blocklistOperations> {
  const { clock, log, events } = host;
  const store = createBlocklistStore(host.database);
  const compile = (): BlockRules => {
    const compiled = compileBlockRules(store.list());
    if (compiled.issues.length > 0) {
      log.error({ issues: compiled.issues }, "block entries with unreadable patterns block nothing");
    }
    return compiled;
  };
  let rules = compile();
  const hits = createHitCounter({
    addHits: (batch) => store.addHits(batch),
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) =>
      log.warn({ err: error }, "hit counts of the block list could not be saved; they are kept and will be retried"),
  });
  const onChange = (): void => {
    rules = compile();
    events.changed("blocklist");
  };
  return {
    name: "blocklist",
    operations: createBlocklistOperations(store, hits, clock, onChange),
    interceptor: createBlocklistInterceptor({ rules: () => rules, onHit: (entryId) => hits.hit(entryId) }),
    task: hits,
    portableRules: portableList<BlockEntry>({
      key: "block_list",
      schemaVersion: 1,
      schemas: [BlockEntry, BlockEntryUpdate],
      list: () => store.list().map((entry) => showBlockEntry(entry, hits.pending(entry.id))),
      check: blockEntryIssues,
      write: (entries) => store.replaceAll(entries.map(readBlockEntry)),
      reload: () => {
        hits.forgetAll();
        store.reload();
        onChange();
      },
    }),
  };
}

/** `onChange` recompiles the stored entries and notifies clients. */
function createBlocklistOperations(
  store: BlocklistStore,
  hits: HitCounter,
  clock: Clock,
  onChange: () => void,
): Handlers<typeof blocklistOperations> {
  const find = (id: string): StoredBlockEntry => store.find(id) ?? notFound("block entry", id);
  const replace = (entry: StoredBlockEntry): StoredBlockEntry => {
    if (!store.update(entry)) return notFound("block entry", entry.id);
    onChange();
    return entry;
  };
  const show = (entry: StoredBlockEntry) => showBlockEntry(entry, hits.pending(entry.id));
  return {
    listBlockEntries: () => ({ status: 200, body: store.list().reverse().map(show) }),
    createBlockEntry: ({ body }) => {
      checkWritten(body);
      const entry = newBlockEntry(randomUUID(), body, clock.now());
      store.insert(entry);
      onChange();
      return { status: 201, body: { id: entry.id } };
    },
    getBlocklistStats: () => {
      const entries = store.list();
      const enabled = entries.filter((entry) => entry.enabled).length;
      const totalHits = entries.reduce((sum, entry) => sum + entry.hitCount + hits.pending(entry.id), 0);
      return {
        status: 200,
        body: { total: entries.length, enabled, disabled: entries.length - enabled, total_hits: totalHits },
      };
    },
    getBlockEntry: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateBlockEntry: ({ params, body }) => {
      checkWritten(body);
      return { status: 200, body: show(replace(updatedBlockEntry(find(params.id), body, clock.now()))) };
    },
    deleteBlockEntry: ({ params }) => {
      if (!store.remove(params.id)) return notFound("block entry", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleBlockEntry: ({ params, body }) => {
      const entry = find(params.id);
      const enabled = body?.enabled ?? !entry.enabled;
      if (enabled !== entry.enabled) replace({ ...entry, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: entry.id, enabled } };
    },
  };
}

function checkWritten(body: NewBlockEntry | BlockEntryUpdate): void {
  const issues = blockEntryIssues(body);
  if (issues.length > 0) throw validationError(issues.map(({ path, message }) => ({ path: `body${path}`, message })));
}

interface Block {
  readonly entryId: string;
  readonly pattern: string;
  readonly response: SyntheticResponse;
}

/** Enabled entries, compiled; immutable, replaced on every change. */
interface BlockRules {
  find(host: string): Block | undefined;
  /** Stored patterns that cannot be parsed and therefore block nothing. */
  readonly issues: readonly { readonly pattern: string; readonly issue: string }[];
}

/** Compiles entries, oldest first: the oldest entry that matches a host wins. */
export function compileBlockRules(entries: readonly StoredBlockEntry[]): BlockRules {
  const enabled = entries.filter((entry) => entry.enabled);
  const matcher = compileHostPatterns(
    enabled.map((entry) => entry.pattern),
    "block-list",
  );
  const blocks = new Map<string, Block>();
  for (const entry of enabled) {
    if (!blocks.has(entry.pattern)) {
      blocks.set(entry.pattern, { entryId: entry.id, pattern: entry.pattern, response: blockResponse(entry) });
    }
  }
  return {
    find: (host) => {
      const pattern = matcher.find(host);
      return pattern === undefined ? undefined : blocks.get(pattern);
    },
    issues: matcher.issues,
  };
}

/** Statuses whose responses have no content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT = new Set([204, 205, 304]);

function blockResponse(entry: StoredBlockEntry): SyntheticResponse {
  // Browsers must not cache the block page beyond the life of its entry.
  const always = ["Cache-Control", "no-store"];
  if (WITHOUT_CONTENT.has(entry.statusCode)) {
    const length = entry.statusCode === 205 ? ["Content-Length", "0"] : [];
    return { status: entry.statusCode, fields: [...length, ...always], body: Buffer.alloc(0) };
  }
  const body = Buffer.from(entry.responseBody);
  const fields = ["Content-Type", entry.contentType, "Content-Length", String(body.length), ...always];
  return { status: entry.statusCode, fields, body };
}

interface BlocklistInterceptorParts {
  readonly rules: () => BlockRules;
  readonly onHit: (entryId: string) => void;
}

/**
 * Responds to requests for blocked hosts before DNS resolution and connecting. `onTarget` is for connections that will
 * be tunnelled (passthrough domains, SOCKS, interception off): its `respond` is the response to CONNECT. It must not be
 * called where TLS will be terminated: browsers show no page for a refused CONNECT, so the client completes its
 * handshake and gets the block page from `onRequestHead`. Each call counts a hit. If it throws, the caller must fail
 * closed.
 */
export function createBlocklistInterceptor({ rules, onHit }: BlocklistInterceptorParts): Interceptor {
  const find = (host: string): Block | undefined => {
    const block = rules().find(host);
    if (block) onHit(block.entryId);
    return block;
  };
  return {
    name: "blocklist",
    onTarget: ({ host }) => {
      const block = find(host);
      return block ? { kind: "respond", response: block.response } : CONTINUE;
    },
    onRequestHead: (exchange) => {
      const block = find(exchange.request.host);
      if (!block) return CONTINUE;
      const { entryId: ruleId, pattern: ruleName, response } = block;
      exchange.addTrace({
        kind: "block",
        ruleId,
        ruleName,
        phase: "request",
        changes: [`answered with ${response.status}`],
      });
      return { kind: "respond", response: block.response };
    },
  };
}

const DEFAULT_STATUS = 403;
const DEFAULT_BODY = "Blocked by Weir";
const DEFAULT_CONTENT_TYPE = "text/plain";

/** An entry as stored: times in milliseconds, defaults filled in. */
interface StoredBlockEntry {
  readonly id: string;
  readonly pattern: string;
  readonly note: string | null;
  readonly enabled: boolean;
  readonly hitCount: number;
  readonly statusCode: number;
  readonly responseBody: string;
  readonly contentType: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Writable fields with defaults filled in; `null` selects the default. The pattern is trimmed and lower-cased. */
function written(
  body: NewBlockEntry | BlockEntryUpdate,
): Omit<StoredBlockEntry, "id" | "hitCount" | "createdAtMs" | "updatedAtMs"> {
  return {
    pattern: body.pattern.trim().toLowerCase(),
    note: body.note ?? null,
    enabled: body.enabled ?? true,
    statusCode: body.status_code ?? DEFAULT_STATUS,
    responseBody: body.response_body ?? DEFAULT_BODY,
    contentType: body.content_type ?? DEFAULT_CONTENT_TYPE,
  };
}

export function newBlockEntry(id: string, body: NewBlockEntry, nowMs: number): StoredBlockEntry {
  return { id, ...written(body), hitCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs };
}

/** Replaces the writable fields; id, hits and creation time stay. */
function updatedBlockEntry(entry: StoredBlockEntry, body: BlockEntryUpdate, nowMs: number): StoredBlockEntry {
  const { id, hitCount, createdAtMs } = entry;
  return { id, ...written(body), hitCount, createdAtMs, updatedAtMs: nowMs };
}

/** The wire form; `extraHits` are not persisted yet. */
function showBlockEntry(entry: StoredBlockEntry, extraHits: number): BlockEntry {
  return {
    id: entry.id,
    pattern: entry.pattern,
    note: entry.note,
    enabled: entry.enabled,
    hit_count: entry.hitCount + extraHits,
    status_code: entry.statusCode,
    response_body: entry.responseBody,
    content_type: entry.contentType,
    created_at: new Date(entry.createdAtMs).toISOString(),
    updated_at: new Date(entry.updatedAtMs).toISOString(),
    device_id: null,
  };
}

/** The inverse of {@link showBlockEntry}. */
function readBlockEntry(entry: BlockEntry): StoredBlockEntry {
  return {
    id: entry.id,
    ...written(entry),
    hitCount: entry.hit_count,
    createdAtMs: Date.parse(entry.created_at),
    updatedAtMs: Date.parse(entry.updated_at),
  };
}

/** Checks beyond the schema; paths are JSON pointers into the entry. */
function blockEntryIssues({ pattern }: NewBlockEntry | BlockEntryUpdate): {
  readonly path: string;
  readonly message: string;
}[] {
  const problem = validateHostPattern(pattern);
  return problem === undefined ? [] : [{ path: "/pattern", message: problem.replace(/\.$/, "") }];
}

type BlocklistStore = RuleTable<StoredBlockEntry>;

function createBlocklistStore(database: Database): BlocklistStore {
  return new RuleTable(database, {
    table: "block_entries",
    columns: {
      pattern: ({ pattern }) => pattern,
      note: ({ note }) => note,
      status_code: ({ statusCode }) => statusCode,
      response_body: ({ responseBody }) => responseBody,
      content_type: ({ contentType }) => contentType,
    },
    read: (row) => ({
      pattern: String(row["pattern"]),
      note: textOrNull(row["note"]),
      statusCode: Number(row["status_code"]),
      responseBody: String(row["response_body"]),
      contentType: String(row["content_type"]),
    }),
  });
}

function textOrNull(value: SqlRow[string] | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
