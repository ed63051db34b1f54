/** When a log file is put away by itself, apart from its size. */
export type Rotation =
  | { readonly mode: "never" }
  | { readonly mode: "hourly" }
  | { readonly mode: "daily" }
  | { readonly mode: "size"; readonly sizeBytes: number };

/**
 * The start of the local hour or day that `atMs` lies in, milliseconds since 1970; undefined where time does not rotate.
 * Two moments belong into one file when this is the same for both. The hour that a clock set back repeats is an hour of
 * its own.
 */
export function periodStart(rotation: Rotation, atMs: number): number | undefined {
  const at = new Date(atMs);
  switch (rotation.mode) {
    case "hourly":
      // By the minutes that the local clock shows: some zones are half an hour off.
      return atMs - ((at.getMinutes() * 60 + at.getSeconds()) * 1000 + at.getMilliseconds());
    case "daily":
      return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
    default:
      return undefined;
  }
}
