import type { WebSocket } from "ws";
import type {
  BlockEntry,
  CaptureSession,
  FocusHost,
  ServerMessage,
  TrafficEvent,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import { fakeConfig } from "./fake-settings.ts";
import { FakeStore, SESSION_ID } from "./fake-store.ts";

/** The data of the replacement for Weir, and the windows that receive its events. */
export class FakeState {
  readonly store: FakeStore;
  readonly blocklist: BlockEntry[] = [];
  readonly focus: FocusHost[] = [];
  sessions: CaptureSession[];
  recording = true;
  readonly config = fakeConfig();
  readonly #sockets = new Set<WebSocket>();
  #pending: TrafficSnapshot[] = [];

  constructor(rows: number) {
    this.store = new FakeStore(rows);
    const at = new Date().toISOString();
    this.sessions = [
      {
        id: SESSION_ID,
        name: "Checkout bug",
        created_at: at,
        updated_at: at,
        request_count: rows,
        total_size_bytes: 12_400_000,
        is_current: true,
        notes: null,
        tags: ["checkout"],
      },
      {
        id: "22222222-2222-4222-8222-222222222222",
        name: "Login flow",
        created_at: at,
        updated_at: at,
        request_count: 812,
        total_size_bytes: 3_100_000,
        is_current: false,
        notes: "Before the fix",
        tags: [],
      },
    ];
  }

  connect(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("message", (data) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : "";
      if (text.includes('"Ping"')) socket.send(JSON.stringify([{ type: "Pong" }]));
    });
    socket.send(JSON.stringify([{ type: "Connected", data: { client_id: "fake" } }]));
  }

  broadcast(...messages: readonly ServerMessage[]): void {
    const text = JSON.stringify(messages);
    for (const socket of this.#sockets) socket.send(text);
  }

  tick(count: number): void {
    const events: TrafficEvent[] = this.#pending.map((row) => {
      this.store.finish(row);
      return { type: "Updated", data: row };
    });
    this.#pending = [];
    for (let index = 0; index < count && this.recording; index += 1) {
      this.#pending.push(this.store.add(Date.now(), true));
      const row = this.store.rows.at(-1);
      if (row !== undefined) events.push({ type: "Added", data: row });
    }
    this.broadcast(...events.map((data): ServerMessage => ({ type: "Traffic", data })));
  }
}
