import { once } from "node:events";
import type { SecureContext, TLSSocket } from "node:tls";
import { FrameReader, frameBytes } from "@headworks/websocket";
import { LoadError, openSecure, type Channel } from "./channel.ts";
import type { LoadJob } from "./load-job.ts";

const TEXT = 1;

/** Sends a text message over a WebSocket inside TLS and waits for its echo. */
export class WebSocketChannel implements Channel {
  readonly #socket: TLSSocket;
  readonly #message: Buffer;
  readonly #reader: FrameReader;
  #settled: { resolve: () => void; reject: (error: Error) => void } | undefined;
  isClosed = false;

  static async open(job: LoadJob, context: SecureContext, expected: Buffer): Promise<WebSocketChannel> {
    const socket = await openSecure(job, context, "http/1.1");
    const lines = [
      "GET /echo HTTP/1.1",
      `Host: ${job.originHost}:${job.originPort}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==",
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    const [response] = (await once(socket, "data")) as [Buffer];
    if (!response.toString("latin1").startsWith("HTTP/1.1 101 ")) {
      throw new LoadError(`The upgrade failed with ${JSON.stringify(response.toString("latin1").slice(0, 200))}`);
    }
    return new WebSocketChannel(socket, expected);
  }

  private constructor(socket: TLSSocket, message: Buffer) {
    this.#socket = socket;
    this.#message = message;
    this.#reader = new FrameReader({ isMasked: false, allowedReserved: 0, keptBytes: message.length });
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (error: Error) => this.#fail(error));
    socket.on("close", () => {
      this.isClosed = true;
      this.#fail(new LoadError("The proxy closed the WebSocket"));
    });
  }

  request(number: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#settled = { resolve, reject };
    this.#socket.write(frameBytes({ opcode: TEXT, payload: this.#message, mask: number }));
    return promise;
  }

  end(): void {
    this.isClosed = true;
    this.#socket.end();
  }

  #read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      at = this.#reader.read(chunk, at);
      const { frame, violation } = this.#reader;
      if (violation !== undefined) return this.#fail(new LoadError(violation.message));
      if (frame?.opcode !== TEXT) continue;
      const settled = this.#settled;
      this.#settled = undefined;
      if (frame.payload.equals(this.#message)) settled?.resolve();
      else settled?.reject(new LoadError("The echo differs from the message"));
    }
  }

  #fail(error: Error): void {
    const settled = this.#settled;
    this.#settled = undefined;
    settled?.reject(error);
  }
}
