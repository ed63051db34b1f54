import { connect, type ClientHttp2Session } from "node:http2";
import type { SecureContext } from "node:tls";
import { FIELDS, LoadError, openSecure, type Channel } from "./channel.ts";
import type { LoadJob } from "./load.ts";

const HEADERS = Object.fromEntries(
  FIELDS.split("\r\n")
    .filter((line) => line !== "")
    .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
);

/** Speaks HTTP/2 with the origin, one stream at a time. */
export class Http2Channel implements Channel {
  readonly #session: ClientHttp2Session;
  readonly #job: LoadJob;
  readonly #expected: Buffer;
  #isChecked = false;

  static async open(job: LoadJob, context: SecureContext, expected: Buffer): Promise<Http2Channel> {
    const socket = await openSecure(job, context, "h2");
    const session = connect(`https://${job.originHost}:${job.originPort}`, { createConnection: () => socket });
    session.on("error", () => undefined);
    return new Http2Channel(session, job, expected);
  }

  private constructor(session: ClientHttp2Session, job: LoadJob, expected: Buffer) {
    this.#session = session;
    this.#job = job;
    this.#expected = expected;
  }

  get isClosed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  request(number: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const { bodyBytes } = this.#job;
    const stream = this.#session.request({ ...HEADERS, ":path": `/${bodyBytes}?n=${number}` });
    const pieces: Buffer[] = [];
    let status: unknown;
    let sizeBytes = 0;
    stream.on("response", (headers) => (status = headers[":status"]));
    stream.on("data", (piece: Buffer) => {
      sizeBytes += piece.length;
      if (!this.#isChecked) pieces.push(piece);
    });
    stream.on("end", () => {
      const isWrong = !this.#isChecked && !Buffer.concat(pieces).equals(this.#expected);
      this.#isChecked = true;
      if (status !== 200 || sizeBytes !== bodyBytes || isWrong) {
        reject(new LoadError(`Answer ${String(status)} with ${sizeBytes} bytes`));
      } else {
        resolve();
      }
    });
    stream.on("error", reject);
    stream.on("close", () => reject(new LoadError("The stream ended in the middle of an exchange")));
    return promise;
  }

  end(): void {
    this.#session.close();
  }
}
