/** What can be on one roster at a time. */
export interface SetMember {
  /** Begins as {@link NOWHERE}; only the roster writes it. */
  setIndex: number;
}

/** The place of what is on no roster. */
export const NOT_IN_SET = -1;

/**
 * Members that come and go by the thousand, in no order. A `Map` or `Set` under such use makes a new table every few dozen
 * changes, and the former one keeps its members and a link to the next: once one of them has grown old, V8's collector of
 * young objects keeps all later tables and half of all members that ever were, until a full collection. Here nothing refers
 * to a member that has gone.
 */
export class ConnectionSet<T extends SetMember> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** Does nothing for a member. */
  add(member: T): void {
    if (member.setIndex !== NOT_IN_SET) return;
    member.setIndex = this.#members.push(member) - 1;
  }

  /** Does nothing for who is no member. */
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

  /**
   * Visits everyone who is a member from the beginning to the end of the walk, at least once. `visit` may add and delete
   * whom it likes.
   */
  forEach(visit: (member: T) => void): void {
    // From the end: who takes the place of a deleted member comes from behind, where everyone was visited.
    for (let place = this.#members.length - 1; place >= 0; place -= 1) {
      const member = this.#members[place];
      if (member !== undefined) visit(member);
    }
  }
}
