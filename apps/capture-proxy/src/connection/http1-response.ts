import { reasonPhrase } from "@headworks/http-fields";
import { areSameFields, LAST_CHUNK, lastChunkWithTrailers, removeField, responseHeadText } from "@headworks/http1";
import type { DownstreamState, FieldLines, Framing, RawFields, RequestHead } from "@headworks/http1";
import type { BatchedWriter } from "@headworks/sockets";
import type { ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { failureResponse } from "./failure-page.ts";
import { responseFields } from "./forwarded-fields.ts";

/** Writes the answers of one client connection, one after the other, framed as the client can take them. */
export class Http1Response {
  readonly #writer: BatchedWriter;
  readonly #state: DownstreamState;
  /** Of the present answer's body; undefined before its head. */
  #framing: Framing | undefined;

  constructor(writer: BatchedWriter, state: DownstreamState) {
    this.#writer = writer;
    this.#state = state;
  }

  /** A client that gets no more than this can tell that something is missing: what was written may still leave. */
  get showsItsEnd(): boolean {
    return this.#framing !== undefined && this.#framing.kind !== "until-close";
  }

  /** Another request was read; nothing of its answer is written yet. */
  begin(): void {
    this.#framing = undefined;
  }

  /**
   * Gives the size of the head in bytes.
   * @throws Http1Error for a field that cannot be written; another answer may be given then
   */
  head(response: Readonly<ResponseMessage>, framing: Framing): number {
    const start = this.#state.responseStarted(framing);
    const fields = responseFields(response.fields, start);
    // RFC 9110, 8.6: a 204 has no Content-Length, whatever the origin says.
    if (response.status === 204) removeField(fields, "content-length");
    const lines = areSameFields(fields, response.fields) ? response.fieldLines : undefined;
    const head = this.#headText(response, fields, lines);
    this.#framing = start.framing;
    this.#writer.text(head);
    return head.length;
  }

  #headText({ status, reason }: Readonly<ResponseMessage>, fields: RawFields, lines: FieldLines | undefined): string {
    try {
      return responseHeadText(status, reason, fields, lines);
    } catch (error) {
      this.#state.responseWithdrawn();
      throw error;
    }
  }

  /** An interim answer, where the client may get one now; false where it may not. */
  informational(status: number, reason: string, fields: RawFields): boolean {
    if (!this.#state.informational(status)) return false;
    this.#writer.text(responseHeadText(status, reason, fields));
    return true;
  }

  /** The whole answer to a request that never became an exchange; the last one of the connection. */
  refusal(status: number, failure: Failure, head: RequestHead | undefined): void {
    const page = failureResponse(failure, head?.fields ?? []);
    this.#state.drain();
    const start = this.#state.responseStarted({ kind: "length", lengthBytes: page.body.length });
    const fields = [...page.fields, "Connection", start.connection ?? "close"];
    this.#writer.text(responseHeadText(status, reasonPhrase(status), fields));
    if (head?.method !== "HEAD") this.#writer.bytes(page.body);
    this.#writer.flush();
    this.#state.responseEnded();
  }

  data(piece: Buffer): void {
    if (this.#framing?.kind === "chunked") this.#writer.chunk(piece);
    else this.#writer.bytes(piece);
  }

  end(trailers: RawFields | undefined): void {
    if (this.#framing?.kind !== "chunked") return;
    this.#writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
  }

  /** Gives what was written to the socket; false while the client takes no more. */
  flush(): boolean {
    return this.#writer.flush();
  }
}
