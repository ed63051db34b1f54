/** An entry of a queue, for leaving it early. */
export interface QueuePlace {
  /** False once it was shifted or left. */
  readonly isWaiting: boolean;
}

class Link<T> implements QueuePlace {
  readonly member: T;
  isWaiting = true;
  before: Link<T> | undefined;
  after: Link<T> | undefined;

  constructor(member: T, before: Link<T> | undefined) {
    this.member = member;
    this.before = before;
  }
}

/**
 * A FIFO queue whose entries may leave early. Unlike a `Set` it keeps no reference to removed entries (see {@link
 * ConnectionSet}).
 */
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

  push(member: T): QueuePlace {
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
  leave(place: QueuePlace): void {
    if (place instanceof Link && place.isWaiting) this.#unlink(place as Link<T>);
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
