import {
  LAST_CHUNK,
  lastChunkWithTrailers,
  responseHeadText,
  setFraming,
  type ResponseStart,
  type RawFields,
} from "@headworks/http1";
import type { BatchedWriter } from "@headworks/sockets";

/** Writes the answers of a client connection, one after the other, each framed as its start says. */
export class Http1ResponseWriter {
  readonly #writer: BatchedWriter;
  #isChunked = false;

  constructor(writer: BatchedWriter) {
    this.#writer = writer;
  }

  /** A head that no body follows here: an informational one, or 101 before a tunnel. It leaves at once. */
  bare(status: number, reason: string, fields: RawFields): void {
    this.#writer.text(responseHeadText(status, reason, fields));
    this.#writer.flush();
  }

  /** `fields` get those of the framing and of the connection. */
  head(status: number, reason: string, fields: RawFields, { framing, connection }: ResponseStart): void {
    this.#isChunked = framing.kind === "chunked";
    if (framing.kind === "length") fields.push("Content-Length", String(framing.lengthBytes));
    else if (this.#isChunked) fields.push("Transfer-Encoding", "chunked");
    else setFraming(fields, framing);
    if (connection !== undefined) fields.push("Connection", connection);
    this.#writer.text(responseHeadText(status, reason, fields));
  }

  data(piece: Buffer): void {
    if (this.#isChunked) this.#writer.chunk(piece);
    else this.#writer.bytes(piece);
  }

  /** The body is whole; trailers have a place behind chunks only. */
  end(trailers: RawFields | undefined): void {
    if (this.#isChunked) this.#writer.text(trailers === undefined ? LAST_CHUNK : lastChunkWithTrailers(trailers));
    this.#writer.flushSoon();
  }
}
