const PAGE_SEQS = 65_536;

/** A set of entry numbers: a bit for each number near others, nothing for the gaps that old sessions leave. */
export class SeqBits {
  readonly #pages = new Map<number, Uint8Array>();

  has(seq: number): boolean {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    if (page === undefined) return false;
    const place = seq % PAGE_SEQS;
    return ((page[place >> 3] ?? 0) & (1 << (place & 7))) !== 0;
  }

  add(seq: number): void {
    const number = Math.floor(seq / PAGE_SEQS);
    let page = this.#pages.get(number);
    if (page === undefined) this.#pages.set(number, (page = new Uint8Array(PAGE_SEQS / 8)));
    const place = seq % PAGE_SEQS;
    page[place >> 3] = (page[place >> 3] ?? 0) | (1 << (place & 7));
  }

  delete(seq: number): void {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    const place = seq % PAGE_SEQS;
    if (page !== undefined) page[place >> 3] = (page[place >> 3] ?? 0) & ~(1 << (place & 7));
  }

  clear(): void {
    this.#pages.clear();
  }
}
