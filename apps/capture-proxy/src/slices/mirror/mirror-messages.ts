/** What there is to know of a body before its bytes. */
export interface BodyHead {
  readonly contentType: string | undefined;
  readonly contentEncoding: readonly string[];
  /** Bytes that flowed. */
  readonly sizeBytes: number;
  /** Bytes that will be given: fewer where the body was cut at `max_body_size`. */
  readonly storedBytes: number;
  /** Its exchange ended before it did. */
  readonly isBroken: boolean;
}

/** One exchange whose bodies are to be written. */
export interface MirrorJob {
  /** Ascending in the order in which exchanges ended. */
  readonly number: number;
  readonly outputDir: string;
  readonly host: string;
  /** Undefined where it is the scheme's own. */
  readonly port: number | undefined;
  /** With its query. */
  readonly path: string;
  readonly response: BodyHead | undefined;
  readonly request: BodyHead | undefined;
  /** What the sidecar says besides the facts of the bodies. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export type Side = "request" | "response";

/** To the thread that writes. Bodies come whole, or in pieces of one exchange at a time. */
export type ToMirror =
  | {
      readonly kind: "whole";
      readonly job: MirrorJob;
      readonly response: Uint8Array | undefined;
      readonly request: Uint8Array | undefined;
    }
  | { readonly kind: "begin"; readonly job: MirrorJob }
  | { readonly kind: "piece"; readonly side: Side; readonly bytes: Uint8Array }
  | { readonly kind: "finish" }
  /** Something of the body is missing: nothing is written. */
  | { readonly kind: "abandon" }
  | { readonly kind: "close" };

/** What became of a job. */
export interface MirrorResult {
  readonly number: number;
  /** Files with bodies. */
  readonly files: number;
  readonly bytes: number;
  /** One sentence; undefined when all went well, or a newer answer to the same URL was faster. */
  readonly error: string | undefined;
}

export type FromMirror =
  | { readonly kind: "done"; readonly results: readonly MirrorResult[] }
  /** The next piece may come. */
  | { readonly kind: "taken" };
