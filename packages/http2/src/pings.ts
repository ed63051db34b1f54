export const PING_BYTES = 8;

/**
 * The pings of ours that wait for their answers. They are taken in their order only, which RFC 9113 does not demand, but
 * which everybody keeps.
 */
export class Pings {
  readonly #waiting: ((isAnswered: boolean) => void)[] = [];
  #answered = 0;

  /** Notes one; gives what it is to carry. */
  add(answered: (isAnswered: boolean) => void): Buffer {
    this.#waiting.push(answered);
    return payloadOf(this.#answered + this.#waiting.length - 1);
  }

  /** One is answered. False: it is none of ours, which means nothing (RFC 9113, 6.7). */
  response(content: Buffer): boolean {
    const answered = this.#waiting[0];
    if (answered === undefined || !content.equals(payloadOf(this.#answered))) return false;
    this.#waiting.shift();
    this.#answered += 1;
    answered(true);
    return true;
  }

  /** None will be answered any more. */
  end(): void {
    for (const answered of this.#waiting.splice(0)) answered(false);
  }
}

function payloadOf(number: number): Buffer {
  const payload = Buffer.alloc(PING_BYTES);
  payload.writeUInt32BE(number >>> 0, PING_BYTES - 4);
  return payload;
}
