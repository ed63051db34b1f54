import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { duplexPair, type Duplex } from "node:stream";
import type { ByteSocket } from "@headworks/sockets";
import { PREFACE, settings } from "@headworks/testkit";
import { Http2Session, type SessionEvents, type SessionOptions } from "../src/index.ts";
import { RawPeer } from "./raw-peer.ts";
import { StreamRecorder } from "./stream-recorder.ts";
import { within } from "./within.ts";

export const LIMITS = { maxFields: 100, listBytes: 65_536 } as const;
export const ASK = [":method", "POST", ":scheme", "http", ":authority", "a.test", ":path", "/"] as const;
export const OK = [":status", "200"] as const;

/** Both ends of a connection of this machine. */
export async function socketPair(): Promise<readonly [client: Socket, server: Socket]> {
  const listener = createServer({ allowHalfOpen: true, noDelay: true });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const accepted = once(listener, "connection");
  const client = connect({ port: (listener.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  client.setNoDelay(true);
  const [server] = (await accepted) as [Socket];
  if (client.connecting) await once(client, "connect");
  listener.close();
  return [client, server];
}

/** The same in memory, where nothing but what the two hold themselves is on its way. */
export function memoryPair(): readonly [client: ByteSocket, server: ByteSocket] {
  const [client, server] = duplexPair();
  return [asSocket(client), asSocket(server)];
}

function asSocket(side: Duplex): ByteSocket {
  const push = side.push.bind(side);
  return Object.assign(side, {
    // Memory that was written is its writer's again, as it is with sockets of the system.
    push: (chunk: Buffer | null) => push(chunk === null ? null : Buffer.from(chunk)),
    destroySoon: () => void side.end(() => side.destroy()),
    resetAndDestroy: () => side.destroy(new Error("reset")),
  });
}

/** A session under test, and what it told. */
export class Tested implements AsyncDisposable {
  readonly session: Http2Session;
  readonly socket: ByteSocket;
  /** What the peer's streams told, oldest first; of a client those that were asked for by {@link ask}. */
  readonly streams: StreamRecorder[] = [];
  readonly closed: Promise<Error | undefined>;
  readonly events: string[] = [];
  readonly listener: SessionEvents;
  onStream: ((recorder: StreamRecorder, fields: string[], isWhole: boolean) => void) | undefined;
  readonly #other: ByteSocket;
  readonly #waiting = new Set<() => void>();

  constructor(socket: ByteSocket, other: ByteSocket, options: Partial<SessionOptions> & Pick<SessionOptions, "role">) {
    this.socket = socket;
    this.#other = other;
    const { promise, resolve } = Promise.withResolvers<Error | undefined>();
    this.closed = promise;
    this.listener = {
      onStream: (stream, fields, isWhole) => {
        const recorder = new StreamRecorder(stream);
        recorder.sections.push(fields);
        recorder.isWhole = isWhole;
        recorder.order.push("section");
        this.streams.push(recorder);
        this.onStream?.(recorder, fields, isWhole);
        for (const wake of this.#waiting) wake();
      },
      onSettings: () => void this.events.push("settings"),
      onGoaway: (code) => void this.events.push(`goaway ${code}`),
      onPeerEnd: () => void this.events.push("end"),
      onClose: (error) => {
        this.events.push("close");
        resolve(error);
      },
    };
    this.session = new Http2Session(socket, { section: LIMITS, ...options }, this.listener);
  }

  ask(isWhole: boolean, more: readonly string[] = []): StreamRecorder {
    const recorder = new StreamRecorder(this.session.request([...ASK, ...more], isWhole));
    this.streams.push(recorder);
    return recorder;
  }

  /** The stream that came as the `at`th. */
  async stream(at = 0): Promise<StreamRecorder> {
    for (;;) {
      const recorder = this.streams[at];
      if (recorder !== undefined) return recorder;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => resolve(undefined);
      this.#waiting.add(wake);
      await within(promise, () => `stream ${at} did not come`);
      this.#waiting.delete(wake);
    }
  }

  async end(): Promise<Error | undefined> {
    return await within(this.closed, () => "the session was not closed");
  }

  /** What any stream of it told and may not have. */
  get broken(): string[] {
    return this.streams.flatMap(({ broken, stream }) => broken.map((what) => `${stream.id}: ${what}`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#other.destroy();
    this.socket.destroy();
    await this.end();
  }
}

export interface AgainstRaw {
  readonly tested: Tested;
  readonly peer: RawPeer;
}

/** A server of ours, and a client that has said its preface and these settings. */
export async function servedRaw(
  options: Partial<SessionOptions> = {},
  first: readonly (readonly [number, number])[] = [],
  pair?: readonly [ByteSocket, ByteSocket],
): Promise<AgainstRaw> {
  const [client, server] = pair ?? (await socketPair());
  const peer = new RawPeer(client, false);
  const tested = new Tested(server, client, { role: "server", ...options });
  peer.send(PREFACE, settings(...first));
  return { tested, peer };
}

/** A client of ours, and a server that has said these settings. */
export async function requestedRaw(first: readonly (readonly [number, number])[] = []): Promise<AgainstRaw> {
  const [client, server] = await socketPair();
  const peer = new RawPeer(server, true);
  const tested = new Tested(client, server, { role: "client" });
  peer.send(settings(...first));
  await peer.isOpen();
  return { tested, peer };
}

/** A client and a server of ours. */
export async function both(): Promise<{ readonly client: Tested; readonly server: Tested }> {
  const [one, other] = await socketPair();
  return {
    client: new Tested(one, other, { role: "client" }),
    server: new Tested(other, one, { role: "server", maxConcurrentStreams: 100 }),
  };
}
