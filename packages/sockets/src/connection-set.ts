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
    const place = member.setIndex;
    if (place === NOT_IN_SET) return;
    member.setIndex = NOT_IN_SET;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[place] = last;
    last.setIndex = place;
  }

  clear(): void {
    for (const member of this.#members) member.setIndex = NOT_IN_SET;
    this.#members.length = 0;
  }

  /** Visits every member that is present during the whole walk at least once. `visit` may add and delete members. */
  forEach(visit: (member: T) => void): void {
    // Backwards: a deleted member is replaced by the last one, which was already visited.
    for (let place = this.#members.length - 1; place >= 0; place -= 1) {
      const member = this.#members[place];
      if (member !== undefined) visit(member);
    }
  }
}
