/** Time-based rotation, in addition to the size limit. */
export type Rotation =
  | { readonly mode: "never" }
  | { readonly mode: "hourly" }
  | { readonly mode: "daily" }
  | { readonly mode: "size"; readonly sizeBytes: number };

/**
 * Start of the local hour or day of `atMs`, milliseconds since 1970; undefined without time-based rotation. Moments
 * with equal starts share a file. An hour repeated when the clock is set back counts separately.
 */
export function periodStart(rotation: Rotation, atMs: number): number | undefined {
  const at = new Date(atMs);
  switch (rotation.mode) {
    case "hourly":
      // Subtracts the displayed minutes: some zones are offset by half an hour.
      return atMs - ((at.getMinutes() * 60 + at.getSeconds()) * 1000 + at.getMilliseconds());
    case "daily":
      return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
    default:
      return undefined;
  }
}
