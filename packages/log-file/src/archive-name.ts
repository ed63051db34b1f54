/** An archive's name, taken apart: `weir.log.2026-03-01_00-00-00.2` is the third of its second. */
export interface ArchiveName {
  /** `2026-03-01_00-00-00`, local time of the rotation. */
  readonly stamp: string;
  /** 0 for the first of its second. */
  readonly copy: number;
}

const SUFFIX = /^\.(\d{4,}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$/;

/** Names for a file that is put away at `atMs`, the preferred one first, without end: the caller takes the first that is free. */
export function* archiveNames(fileName: string, atMs: number): Generator<string, never> {
  const name = `${fileName}.${archiveStamp(atMs)}`;
  yield name;
  for (let copy = 1; ; copy += 1) yield `${name}.${copy}`;
}

/** The moment in local time, as archives are named: `2026-03-01_00-00-00`. */
export function archiveStamp(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}_${two(at.getHours())}-${two(at.getMinutes())}-${two(at.getSeconds())}`;
}

/** Reads the name of an archive of `fileName`; undefined for every name that {@link archiveNames} would not give. */
export function parseArchiveName(fileName: string, name: string): ArchiveName | undefined {
  if (!name.startsWith(fileName)) return undefined;
  const [, stamp, copy] = SUFFIX.exec(name.slice(fileName.length)) ?? [];
  return stamp === undefined ? undefined : { stamp, copy: Number(copy ?? 0) };
}
