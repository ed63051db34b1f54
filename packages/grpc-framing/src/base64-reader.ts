import { Buffer } from "node:buffer";

const ALPHABET = /^[A-Za-z0-9+/]*$/u;

/**
 * Streaming decoder for gRPC-Web text (base64). Padding may occur in the middle, since senders may encode in pieces;
 * line ends are skipped. Input may be split anywhere.
 */
export class Base64Reader {
  /** Up to three characters of an incomplete group. */
  #rest = "";
  #broken = false;

  /** True after invalid input; decoding stops there. */
  get isBroken(): boolean {
    return this.#broken;
  }

  push(input: Buffer): Buffer {
    if (this.#broken) return Buffer.alloc(0);
    const text = this.#rest + input.toString("latin1").replaceAll(/[\r\n]/gu, "");
    const whole = text.length - (text.length % 4);
    this.#rest = text.slice(whole);
    const decoded: Buffer[] = [];
    let from = 0;
    while (from < whole) {
      const padding = text.indexOf("=", from);
      const to = padding === -1 || padding >= whole ? whole : padding - (padding % 4) + 4;
      const run = text.slice(from, to);
      if (!isBase64(run)) {
        this.#broken = true;
        break;
      }
      decoded.push(Buffer.from(run, "base64"));
      from = to;
    }
    return decoded.length === 1 ? (decoded[0] ?? Buffer.alloc(0)) : Buffer.concat(decoded);
  }

  /** Decodes the remaining characters without padding. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = "";
    if (this.#broken || rest.length < 2 || !ALPHABET.test(rest)) return Buffer.alloc(0);
    return Buffer.from(rest, "base64");
  }
}

/** Complete groups of four with padding at the very end only. */
function isBase64(run: string): boolean {
  const body = run.endsWith("==") ? run.slice(0, -2) : run.endsWith("=") ? run.slice(0, -1) : run;
  return ALPHABET.test(body);
}
