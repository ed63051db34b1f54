import type { Failure } from "#exchange/failure.ts";

/** What is to be done after bytes of the upstream proxy came. */
export type HandshakeStep =
  | { readonly kind: "going-on"; readonly send: Uint8Array | undefined }
  /** The tunnel is open; `rest` came through it already. */
  | { readonly kind: "open"; readonly rest: Buffer }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Asks an upstream proxy for a tunnel, without I/O. */
export interface TunnelHandshake {
  /** What to send first. */
  start(): Uint8Array;
  /** Takes what came. Not called again after an outcome other than `going-on`. */
  read(chunk: Buffer): HandshakeStep;
}
