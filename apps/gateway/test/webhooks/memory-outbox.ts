import type { Outbox, OutboxEvent } from "#storage/state-store.ts";

/** An outbox that a test holds across "restarts", and that can be told to fail or to hang. */
export class MemoryOutbox implements Outbox {
  readonly events = new Map<string, OutboxEvent>();
  /** What appending does: writes, rejects, or never answers until `release`. */
  appends: "work" | "fail" | "hang" = "work";
  readonly acknowledged: [id: string, target: string][] = [];
  /** Appends that were begun. */
  begun = 0;
  #held: (() => void)[] = [];

  async append(event: OutboxEvent): Promise<void> {
    this.begun += 1;
    if (this.appends === "fail") throw new Error("disk full");
    if (this.appends === "hang") await new Promise<void>((resolve) => this.#held.push(resolve));
    this.events.set(event.id, event);
  }

  /** Appends that hang go on. */
  release(): void {
    this.appends = "work";
    for (const go of this.#held) go();
    this.#held = [];
  }

  async acknowledge(id: string, target: string): Promise<void> {
    this.acknowledged.push([id, target]);
    const event = this.events.get(id);
    if (event === undefined) return;
    const targets = event.targets.filter((each) => each !== target);
    if (targets.length === 0) this.events.delete(id);
    else this.events.set(id, { ...event, targets });
  }

  async pending(): Promise<readonly OutboxEvent[]> {
    return [...this.events.values()];
  }
}
