import { Buffer } from "node:buffer";

/** Puts fields one after the other. */
export class WireWriter {
  readonly #pieces: Uint8Array[] = [];

  tag(number: number, wireType: number): void {
    this.varint(BigInt(number) * 8n + BigInt(wireType));
  }

  /** The lowest 64 bits of the value. */
  varint(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    const octets: number[] = [];
    while (rest > 0x7fn) {
      octets.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    octets.push(Number(rest));
    this.#pieces.push(Uint8Array.from(octets));
  }

  raw(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
  }

  /** With its length in front. */
  bytes(bytes: Uint8Array): void {
    this.varint(BigInt(bytes.length));
    this.#pieces.push(bytes);
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}
