import type { SyntheticResponse } from "#exchange/phases.ts";
import { compileHostPatterns } from "@headworks/host-patterns";
import type { StoredBlockEntry } from "./block-entry.ts";

export interface Block {
  readonly entryId: string;
  readonly pattern: string;
  readonly response: SyntheticResponse;
}

/** Enabled entries, compiled; immutable, replaced on every change. */
export interface BlockRules {
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
