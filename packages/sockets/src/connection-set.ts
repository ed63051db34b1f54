/** A member of at most one set at a time. */
export interface SetMember {
  /** Initially {@link NOT_IN_SET}; written only by the set. */
  setIndex: number;
}

export const NOT_IN_SET = -1;

/**
 * An unordered set for members that come and go by the thousand. A `Map` or `Set` under such use allocates a new table
 * every few dozen changes, and each old table keeps its members and a link to the next: once one of them is promoted,
 * V8's young-generation collector retains all later tables and half of all members ever added until a full collection.
 * This set keeps no reference to removed members.
 */
export class ConnectionSet<T extends SetMember> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** No effect on a member. */
  add(member: T): void {
    if (member.setIndex !== NOT_IN_SET) return;
    member.setIndex = this.#members.push(member) - 1;
  }

  /** No effect on a non-member. */
  delete(member: T): void {
    const index = member.setIndex;
    if (index === NOT_IN_SET) return;
    member.setIndex = NOT_IN_SET;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[index] = last;
    last.setIndex = index;
  }

  clear(): void {
    for (const member of this.#members) member.setIndex = NOT_IN_SET;
    this.#members.length = 0;
  }

  /** Visits every member that is present during the whole walk at least once. `visit` may add and delete members. */
  forEach(visit: (member: T) => void): void {
    // Backwards: a deleted member is replaced by the last one, which was already visited.
    for (let index = this.#members.length - 1; index >= 0; index -= 1) {
      const member = this.#members[index];
      if (member !== undefined) visit(member);
    }
  }
}

/** An entry of a queue, for leaving it early. */
export interface QueueEntry {
  /** False once it was shifted or left. */
  readonly isWaiting: boolean;
}

class Link<T> implements QueueEntry {
  readonly member: T;
  isWaiting = true;
  before: Link<T> | undefined;
  after: Link<T> | undefined;

  constructor(member: T, before: Link<T> | undefined) {
    this.member = member;
    this.before = before;
  }
}

/** A FIFO queue whose entries may leave early. It keeps no reference to removed entries. */
export class Queue<T> {
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.member;
  }

  push(member: T): QueueEntry {
    const link = new Link(member, this.#last);
    if (this.#last === undefined) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.#size += 1;
    return link;
  }

  shift(): T | undefined {
    const link = this.#first;
    if (link === undefined) return undefined;
    this.#unlink(link);
    return link.member;
  }

  /** Removes and returns all entries. */
  shiftAll(): T[] {
    const members: T[] = [];
    for (let link = this.#first; link !== undefined; link = this.#first) {
      members.push(link.member);
      this.#unlink(link);
    }
    return members;
  }

  /** Leaves early. No effect on an entry that is gone; it must belong to this queue. */
  leave(entry: QueueEntry): void {
    if (entry instanceof Link && entry.isWaiting) this.#unlink(entry as Link<T>);
  }

  #unlink(link: Link<T>): void {
    const { before, after } = link;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // A stale entry must not keep its neighbours alive.
    link.before = undefined;
    link.after = undefined;
    link.isWaiting = false;
    this.#size -= 1;
  }
}

/** An object with a deadline on the monotonic clock. */
export interface Timed extends SetMember {
  /** Monotonic milliseconds, Infinity for none. Written freely, read by the sweep. */
  deadlineMs: number;
  onDeadline(): void;
}

/**
 * Watches any number of deadlines with one timer. Setting a deadline is a plain assignment, cheap enough for every
 * byte; the price is that it fires up to one interval late. After the process was blocked, pending input is read
 * before deadlines fire.
 */
export class DeadlineSweep {
  readonly #watched = new ConnectionSet<Timed>();
  readonly #timer: NodeJS.Timeout;

  constructor(intervalMs = 500) {
    // Timers run before I/O, immediates after it.
    this.#timer = setInterval(() => setImmediate(this.#sweep), intervalMs);
    this.#timer.unref();
  }

  add(timed: Timed): void {
    this.#watched.add(timed);
  }

  delete(timed: Timed): void {
    this.#watched.delete(timed);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#watched.clear();
  }

  readonly #sweep = (): void => {
    const nowMs = performance.now();
    this.#watched.forEach((timed) => {
      if (timed.deadlineMs > nowMs) return;
      timed.deadlineMs = Number.POSITIVE_INFINITY;
      timed.onDeadline();
    });
  };
}
