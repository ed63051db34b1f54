import type { Failure } from "#exchange/failure.ts";

/** The next step after bytes from the upstream proxy. */
export type HandshakeStep =
  | { readonly kind: "going-on"; readonly send: Uint8Array | undefined }
  /** The tunnel is open; `rest` was received through it. */
  | { readonly kind: "open"; readonly rest: Buffer }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Opens a tunnel through an upstream proxy, without I/O. */
export interface TunnelHandshake {
  /** The first bytes to send. */
  start(): Uint8Array;
  /** Processes received bytes. Not called again after an outcome other than `going-on`. */
  read(chunk: Buffer): HandshakeStep;
}
