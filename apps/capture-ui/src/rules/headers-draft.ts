/** A header in an editor; `key` identifies it across moves. */
export interface HeaderDraft {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

let lastKey = 0;

export function headerDraft(name = "", value = ""): HeaderDraft {
  lastKey += 1;
  return { key: lastKey, name, value };
}

/** Drafts of headers in order, including duplicates. */
export function headerDrafts(list: readonly (readonly [string, string])[]): readonly HeaderDraft[] {
  return list.map(([name, value]) => headerDraft(name, value));
}

/** The headers of drafts with a name. */
export function headersList(drafts: readonly HeaderDraft[]): [string, string][] {
  return drafts.flatMap(({ name, value }): [string, string][] => (name.trim() === "" ? [] : [[name.trim(), value]]));
}

/** Moves a header by `by` positions, limited to the ends of the list. */
export function movedHeader(drafts: readonly HeaderDraft[], key: number, by: number): readonly HeaderDraft[] {
  const from = drafts.findIndex((draft) => draft.key === key);
  const moved = drafts[from];
  const to = from + by;
  if (moved === undefined || to < 0 || to >= drafts.length) return drafts;
  return drafts.toSpliced(from, 1).toSpliced(to, 0, moved);
}

/** Headers by name, as mocks store them; repeated names have a list of values. */
export function headersRecord(drafts: readonly HeaderDraft[]): Record<string, string | string[]> {
  const record: Record<string, string | string[]> = {};
  const spelling = new Map<string, string>();
  for (const [name, value] of headersList(drafts)) {
    const known = spelling.get(name.toLowerCase());
    const before = known === undefined ? undefined : record[known];
    if (known === undefined || before === undefined) {
      spelling.set(name.toLowerCase(), name);
      record[name] = value;
    } else {
      record[known] = [...(Array.isArray(before) ? before : [before]), value];
    }
  }
  return record;
}

/** Drafts of headers by name. */
export function recordDrafts(record: Readonly<Record<string, string | readonly string[]>>): readonly HeaderDraft[] {
  return Object.entries(record).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value).map((one) => headerDraft(name, one)),
  );
}
