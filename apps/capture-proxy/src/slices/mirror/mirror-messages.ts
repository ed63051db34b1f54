/** Facts of a body, sent before its bytes. */
export interface BodyHead {
  readonly contentType: string | undefined;
  readonly contentEncoding: readonly string[];
  /** Bytes transferred. */
  readonly sizeBytes: number;
  /** Bytes that will follow: fewer if the body was cut at `max_body_size`. */
  readonly storedBytes: number;
  /** True if the exchange ended before the body did. */
  readonly isBroken: boolean;
}

/** One exchange whose bodies are to be written. */
export interface MirrorJob {
  /** Ascending in the order in which exchanges ended. */
  readonly number: number;
  readonly outputDir: string;
  readonly host: string;
  /** Undefined for the scheme's default port. */
  readonly port: number | undefined;
  /** Includes the query. */
  readonly path: string;
  readonly response: BodyHead | undefined;
  readonly request: BodyHead | undefined;
  /** Content of the sidecar besides the facts of the bodies. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export type Side = "request" | "response";

/** Messages to the mirror thread. Bodies come whole, or in pieces of one exchange at a time. */
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
  /** Part of the body is missing, so nothing is written. */
  | { readonly kind: "abandon" }
  | { readonly kind: "close" };

export interface MirrorResult {
  readonly number: number;
  readonly files: number;
  readonly bytes: number;
  /** One sentence; undefined on success, or if a newer response to the same URL was written first. */
  readonly error: string | undefined;
}

export type FromMirror =
  | { readonly kind: "done"; readonly results: readonly MirrorResult[] }
  /** The thread is ready for the next piece. */
  | { readonly kind: "taken" };
