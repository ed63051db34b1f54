import type { CaptureSession, TrafficFilter } from "@headworks/capture-contract";
import type { FrameQuery, StreamGroupQuery, StreamKind, StreamQuery } from "../streams/stream-store.ts";
import type { TextIndexSetup } from "../search/text-index.ts";

/** A session's state when the request was made. */
export interface SessionScope {
  readonly number: number;
  readonly id: string;
  readonly floorSeq: number;
  readonly entryCount: number;
}

export interface RowsRequest {
  readonly op: "rows";
  readonly scope: SessionScope;
  readonly filter: TrafficFilter;
  readonly sort: string;
  readonly order: "asc" | "desc";
  readonly offset: number;
  readonly limit: number;
}

export interface EntriesRequest {
  readonly op: "entries";
  readonly scope: SessionScope;
  readonly filter: TrafficFilter;
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
  readonly includeBodies: boolean;
}

/** Sessions by number, with their cleared range. */
export type SessionNames = ReadonlyMap<number, { readonly id: string; readonly floorSeq: number }>;

export interface BodyRequest {
  readonly op: "body";
  readonly id: string;
  readonly sessions: SessionNames;
  readonly side: "request" | "response";
  readonly decoded: boolean;
  readonly utf8: boolean;
  readonly start: number;
  readonly end: number | undefined;
}

/** A session's filtered entries, or entries by id. */
export interface ExportRequest {
  readonly op: "exportOpen";
  readonly scope: SessionScope;
  readonly filter: TrafficFilter;
  readonly ids: readonly string[] | undefined;
  readonly sessions: SessionNames;
  /** Set: a native document. Undefined: a HAR. */
  readonly session: CaptureSession | undefined;
  readonly exportedAt: string;
}

export interface PreviewRequest {
  readonly op: "preview";
  readonly scope: SessionScope;
  /** JSON text, which preserves the digits of numbers; structured clone does not. */
  readonly condition: string;
  /** Matches in any of these. */
  readonly phases: readonly ("request" | "response")[];
  readonly limit: number;
  readonly sample: number;
  /** Entry that the condition is explained for. */
  readonly explain: string | undefined;
}

export type StreamRequest =
  | { readonly op: "streams"; readonly sessions: SessionNames; readonly query: StreamQuery }
  | { readonly op: "streamGroups"; readonly sessions: SessionNames; readonly query: StreamGroupQuery }
  | { readonly op: "stream"; readonly sessions: SessionNames; readonly id: string }
  | { readonly op: "frames"; readonly sessions: SessionNames; readonly query: FrameQuery }
  | { readonly op: "frameBytes"; readonly sessions: SessionNames; readonly id: string; readonly ordinal: number }
  | { readonly op: "streamStats"; readonly sessions: SessionNames; readonly kind: StreamKind };

export type ReaderRequest =
  | StreamRequest
  | ExportRequest
  | PreviewRequest
  | { readonly op: "exportNext" | "exportClose"; readonly handle: number }
  | RowsRequest
  | EntriesRequest
  | BodyRequest
  | {
      readonly op: "latest";
      readonly scope: SessionScope;
      readonly limit: number;
      readonly filter: TrafficFilter;
    }
  | { readonly op: "count"; readonly scope: SessionScope; readonly filter: TrafficFilter }
  | { readonly op: "summary"; readonly scope: SessionScope; readonly filter: TrafficFilter }
  | {
      readonly op: "tree";
      readonly scope: SessionScope;
      readonly filter: TrafficFilter;
      readonly ofHost: string | undefined;
    }
  | {
      readonly op: "values";
      readonly scope: SessionScope;
      readonly field: string;
      readonly prefix: string;
      readonly limit: number;
    }
  | { readonly op: "row"; readonly id: string; readonly sessions: SessionNames }
  | {
      readonly op: "entry";
      readonly id: string;
      readonly sessions: SessionNames;
      readonly includeBodies: boolean;
      readonly decompressed: boolean;
    };

export interface ReaderSetup {
  readonly path: string;
  readonly bodiesFolder: string;
  /** For large decoded bodies; removed with the thread. */
  readonly decodedFolder: string;
  /** Text index, on the searching thread only. */
  readonly index: TextIndexSetup | undefined;
}

export type ToReader =
  | { readonly kind: "request"; readonly id: number; readonly request: ReaderRequest }
  | { readonly kind: "cancel"; readonly id: number }
  | {
      readonly kind: "change";
      readonly changedSeqs: readonly number[];
      readonly streamedSeqs: readonly number[];
      readonly removedSeqs: readonly number[];
      readonly reset: boolean;
    }
  | { readonly kind: "reopen" }
  | { readonly kind: "close" };

export type FromReader =
  /** The store is open. */
  | { readonly kind: "ready" }
  | { readonly kind: "response"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly name: string; readonly message: string };
