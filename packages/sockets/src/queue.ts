/** Where a member stands in its queue, for leaving it before its turn. */
export interface QueuePlace {
  /** False once it had its turn or left. */
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
 * Who waits for a turn, first come first served; any of them may leave early. What a `Set` does too, but for its old
 * tables, which keep members that are long gone (see {@link Roster}): here nothing refers to who has left.
 */
export class Queue<T> {
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Who is next. */
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

  /** Takes out who is next. */
  shift(): T | undefined {
    const link = this.#first;
    if (link === undefined) return undefined;
    this.#unlink(link);
    return link.member;
  }

  /** Takes out all who wait now. */
  shiftAll(): T[] {
    const members: T[] = [];
    for (let link = this.#first; link !== undefined; link = this.#first) {
      members.push(link.member);
      this.#unlink(link);
    }
    return members;
  }

  /** Leaves early. Does nothing for a place that is no more; it must be one of this queue. */
  leave(place: QueuePlace): void {
    if (place instanceof Link && place.isWaiting) this.#unlink(place as Link<T>);
  }

  #unlink(link: Link<T>): void {
    const { before, after } = link;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // An old one that somebody holds must not hold its neighbours.
    link.before = undefined;
    link.after = undefined;
    link.isWaiting = false;
    this.#size -= 1;
  }
}
