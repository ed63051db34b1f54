import type { CaptureSession } from "@headworks/capture-contract";
import type { SqlRow } from "../database.ts";
import { entryOfRow } from "../read/entry-shapes.ts";
import { storedFields } from "../read/stored-json.ts";
import { readFilePart } from "../read/stored-bodies.ts";
import { TrafficExport } from "./traffic-export.ts";
import type { ExportSource } from "./traffic-export.ts";

/** The version written, and the only one read. */
export const SESSION_FORMAT_VERSION = "1.0";
/** Larger bodies go to `bodies` in parts, so that no reader or writer needs a whole one in memory. */
export const MAX_EMBEDDED_BODY_BYTES = 4_194_304;
/** A multiple of three: the concatenated base64 parts equal the base64 of the whole. */
const PART_BYTES = 786_432;

const SIDES = ["request", "response"] as const;

/**
 * The native document of a session: `version`, `exported_at`, `session`, `bodies` (if there are large ones; ordered
 * parts `{entry, side, data}`), `entries`, and `streams` and `frames` if there are any. Entries are oldest first, as
 * the API shows them plus `scheme`, `port`, `duration_ms` and `ttfb_ms`. Lossless.
 */
export function sessionExport(source: SessionSource, session: CaptureSession, exportedAt: string): TrafficExport {
  return new TrafficExport(source.seqs.length, sessionTexts(source, session, exportedAt));
}

export interface SessionSource extends ExportSource {
  /** Entries with a body above {@link MAX_EMBEDDED_BODY_BYTES}. */
  readonly largeSeqs: readonly number[];
  /** Members with streams and frames. */
  readonly streamTexts: () => Iterable<string>;
}

function* sessionTexts(
  source: SessionSource,
  session: CaptureSession,
  exportedAt: string,
): Generator<string, undefined> {
  const { id, name, created_at, updated_at, request_count, notes, tags } = session;
  const head = JSON.stringify({
    version: SESSION_FORMAT_VERSION,
    exported_at: exportedAt,
    session: { id, name, created_at, updated_at, request_count, notes, tags },
  });
  yield head.slice(0, -1);
  yield* bodyTexts(source);
  yield ',"entries":[';
  let index = 0;
  for (const seq of source.seqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    yield `${index === 0 ? "\n" : ",\n"}${JSON.stringify(nativeEntry(found.row, found.sessionId, source))}`;
    index += 1;
  }
  yield "\n]";
  yield* source.streamTexts();
  yield "}\n";
  return undefined;
}

function* bodyTexts(source: SessionSource): Generator<string> {
  let isFirst = true;
  for (const seq of source.largeSeqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    for (const side of SIDES) {
      if (Number(found.row[`${side}_body_stored`]) <= MAX_EMBEDDED_BODY_BYTES) continue;
      for (const data of bodyParts(source, seq, side)) {
        const part = { entry: String(found.row["id"]), side, data: Buffer.from(data).toString("base64") };
        yield `${isFirst ? ',"bodies":[\n' : ",\n"}${JSON.stringify(part)}`;
        isFirst = false;
      }
    }
  }
  if (!isFirst) yield "\n]";
}

function* bodyParts(source: ExportSource, seq: number, side: "request" | "response"): Generator<Uint8Array> {
  const place = source.bodies.locate(seq, side);
  if (place === undefined) return;
  for (let start = 0; ; start += PART_BYTES) {
    const end = start + PART_BYTES;
    const part = typeof place === "string" ? readFilePart(place, start, end) : place.subarray(start, end);
    if (part === undefined || part.length === 0) return;
    yield part;
  }
}

function nativeEntry(row: SqlRow, sessionId: string, { bodies }: ExportSource): unknown {
  const shown = (side: "request" | "response"): Parameters<typeof entryOfRow>[2] => {
    const stored = Number(row[`${side}_body_stored`]);
    const isEmbedded = stored > 0 && stored <= MAX_EMBEDDED_BODY_BYTES;
    return {
      bytes: isEmbedded ? bodies.read(Number(row["seq"]), side, stored) : undefined,
      fields: storedFields(row[`${side}_fields`]) ?? [],
    };
  };
  return {
    ...entryOfRow(row, sessionId, shown("request"), shown("response")),
    scheme: row["scheme"],
    port: row["port"],
    duration_ms: milliseconds(row["duration_us"]),
    ttfb_ms: milliseconds(row["ttfb_us"]),
  };
}

function milliseconds(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value) / 1000;
}
