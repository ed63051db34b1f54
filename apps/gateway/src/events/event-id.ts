/** Identifiers of one process's events: they sort as text in the order in which they were made. */
export class EventIds {
  readonly #prefix: string;
  #count = 0;

  /** `bootMs` is the wall clock at the start of the process, milliseconds since 1970. */
  constructor(bootMs: number) {
    this.#prefix = `evt-${bootHex(bootMs)}-`;
  }

  /** `evt-<boot ms, 11 hex digits until the year 2527>-<16 hex digits>`. */
  next(): string {
    const id = this.#prefix + this.#count.toString(16).padStart(16, "0");
    this.#count += 1;
    return id;
  }

  /** Whether an id was made by this process, rather than by one before it. */
  isOwn(id: string): boolean {
    return id.startsWith(this.#prefix);
  }
}

/** The boot time as ids and the envelope's `gateway` show it. */
export const bootHex = (bootMs: number): string => Math.trunc(bootMs).toString(16).padStart(11, "0");
