import type { SecureContext } from "node:tls";
import { Http2Session, NO_ERROR, type StreamHandler } from "@headworks/http2";
import { FIELDS, LoadError, openSecure, type Channel } from "./channel.ts";
import type { LoadJob } from "./load-job.ts";

const SECTION_LIMITS = { maxFields: 100, listBytes: 65_536 };

const HEADERS = FIELDS.split("\r\n")
  .filter((line) => line !== "")
  .flatMap((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]);

/** Uses HTTP/2 with the origin, one stream at a time. */
export class Http2Channel implements Channel {
  readonly #session: Http2Session;
  readonly #job: LoadJob;
  readonly #expected: Buffer;
  #isChecked = false;

  static async open(job: LoadJob, context: SecureContext, expected: Buffer): Promise<Http2Channel> {
    const socket = await openSecure(job, context, "h2");
    const session = new Http2Session(socket, { role: "client", section: SECTION_LIMITS }, { onClose: () => undefined });
    return new Http2Channel(session, job, expected);
  }

  private constructor(session: Http2Session, job: LoadJob, expected: Buffer) {
    this.#session = session;
    this.#job = job;
    this.#expected = expected;
  }

  get isClosed(): boolean {
    return !this.#session.acceptsStreams;
  }

  async request(number: number): Promise<void> {
    const { originHost, originPort, bodyBytes } = this.#job;
    const section = [":method", "GET", ":scheme", "https", ":authority", `${originHost}:${originPort}`];
    section.push(":path", `/${bodyBytes}?n=${number}`, ...HEADERS);
    const response = new Response(this.#isChecked ? undefined : this.#expected);
    this.#session.request(section, true).handler = response;
    await response.whenWhole;
    if (response.isWrong || response.status !== "200" || response.sizeBytes !== bodyBytes) {
      throw new LoadError(`Response ${response.status} with ${response.sizeBytes} bytes`);
    }
    this.#isChecked = true;
  }

  end(): void {
    this.#session.close();
  }
}

/** One response, whose body is checked if its content is known. */
class Response implements StreamHandler {
  status = "";
  sizeBytes = 0;
  isWrong = false;
  readonly whenWhole: Promise<void>;
  readonly #expected: Buffer | undefined;
  readonly #resolve: () => void;
  readonly #reject: (error: Error) => void;

  constructor(expected: Buffer | undefined) {
    this.#expected = expected;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.whenWhole = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onSection(section: string[], isWhole: boolean): void {
    this.status = section[1] ?? "";
    if (isWhole) this.#resolve();
  }

  onData(piece: Buffer): void {
    const wanted = this.#expected?.subarray(this.sizeBytes, this.sizeBytes + piece.length);
    if (wanted?.equals(piece) === false) this.isWrong = true;
    this.sizeBytes += piece.length;
  }

  onTrailers(): void {
    // The origin sends no trailers.
  }

  onEnd(): void {
    this.#resolve();
  }

  onDrain(): void {
    // Requests have no bodies.
  }

  onClose(code: number): void {
    const message = code === NO_ERROR ? "The connection ended" : `The stream was reset with ${code}`;
    this.#reject(new LoadError(`${message} during an exchange`));
  }
}
