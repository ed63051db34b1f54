/** Parts of an archive name: `weir.log.2026-03-01_00-00-00.2` is the third of its second. */
export interface ArchiveName {
  /** `2026-03-01_00-00-00`, local time of the rotation. */
  readonly stamp: string;
  /** 0 for the first of its second. */
  readonly copy: number;
}

const SUFFIX = /^\.(\d{4,}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$/;

/** Endless candidates in order of preference; the caller takes the first free one. */
export function* archiveNames(fileName: string, atMs: number): Generator<string, never> {
  const name = `${fileName}.${archiveStamp(atMs)}`;
  yield name;
  for (let copy = 1; ; copy += 1) yield `${name}.${copy}`;
}

/** Local time in archive names: `2026-03-01_00-00-00`. */
export function archiveStamp(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}_${two(at.getHours())}-${two(at.getMinutes())}-${two(at.getSeconds())}`;
}

/** Inverse of {@link archiveNames}; undefined for all other names. */
export function parseArchiveName(fileName: string, name: string): ArchiveName | undefined {
  if (!name.startsWith(fileName)) return undefined;
  const [, stamp, copy] = SUFFIX.exec(name.slice(fileName.length)) ?? [];
  return stamp === undefined ? undefined : { stamp, copy: Number(copy ?? 0) };
}
