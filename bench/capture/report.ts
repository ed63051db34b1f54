import type { Measured, Round } from "./measure-row.ts";
import type { Row } from "./rows.ts";

/** A contender's CPU per request as multiples of Weir's, one for each pair of rounds. */
export interface Ratio {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export type Verdict = "pass" | "FAIL" | "unmeasured";

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Ratios of single rounds, because the two sides of a round were measured within seconds. */
export function ratioOf(own: readonly Round[], other: readonly Round[]): Ratio | undefined {
  const ratios = own.flatMap(({ cpuUs }, index) => {
    const paired = other[index];
    return paired === undefined ? [] : [paired.cpuUs / cpuUs];
  });
  return ratios.length === 0
    ? undefined
    : { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
}

/** A target is met if the median of the rounds meets it. */
export function verdict(ratio: Ratio | undefined, floor: number): Verdict {
  if (ratio === undefined) return "unmeasured";
  return ratio.median >= floor ? "pass" : "FAIL";
}

const COLUMNS = [
  ["proxy", 17],
  ["x Weir", 8],
  ["(min)", 8],
  ["floor", 7],
  ["aim", 6],
  ["", 12],
  ["CPU us/req", 11],
  ["(min)", 8],
  ["main us", 9],
  ["req/s", 8],
  ["core", 6],
  ["p50 ms", 8],
  ["p99 ms", 8],
  ["RSS MB", 8],
] as const;

const tableRow = (cells: readonly string[]): string =>
  cells
    .map((cell, index) => (index === 0 ? cell.padEnd(COLUMNS[0][1]) : cell.padStart(COLUMNS[index]?.[1] ?? 0)))
    .join("")
    .trimEnd();

/** The table of one row, and the number of missed targets. */
export function rowTable(row: Row, measured: readonly Measured[]): { readonly text: string; readonly failed: number } {
  const [own] = measured;
  const lines = [`${row.name}: ${row.title}`, tableRow(COLUMNS.map(([title]) => title))];
  const notes: string[] = [];
  let failed = 0;
  for (const one of measured) {
    const { contender, rounds } = one;
    const ratio = own === undefined ? undefined : ratioOf(own.rounds, rounds);
    const target = row.targets[contender.name];
    const outcome = target === undefined ? "" : verdict(ratio, target.floor);
    if (outcome === "FAIL") failed += 1;
    const isAimed = target !== undefined && ratio !== undefined && ratio.median >= target.aim;
    const middle = (pick: (round: Round) => number, digits = 0): string =>
      rounds.length === 0 ? "-" : median(rounds.map(pick)).toFixed(digits);
    lines.push(
      tableRow([
        contender.name,
        ratio === undefined ? "-" : ratio.median.toFixed(2),
        ratio === undefined ? "-" : ratio.min.toFixed(2),
        target === undefined ? "" : String(target.floor),
        target === undefined ? "" : String(target.aim),
        isAimed ? "pass, aim" : outcome,
        middle((round) => round.cpuUs, 1),
        rounds.length === 0 ? "-" : Math.min(...rounds.map((round) => round.cpuUs)).toFixed(1),
        middle((round) => round.mainThreadUs, 1),
        middle((round) => round.perSecond),
        middle((round) => round.coreShare, 2),
        middle((round) => round.p50Ms, 1),
        middle((round) => round.p99Ms, 1),
        one.residentMb.toFixed(0),
      ]),
    );
    if (one.problem !== undefined) notes.push(`  ${contender.name} failed: ${one.problem}`);
    else if (one.stored !== "") notes.push(`  ${contender.name} stored: ${one.stored}`);
    const reopened = median(rounds.map((round) => round.reopened));
    if (!row.isNewConnectionEach && reopened > 0) {
      notes.push(`  ${contender.name} closed ${reopened} connections a round`);
    }
  }
  if (own?.problem !== undefined) failed += 1;
  return { text: [...lines, ...notes].join("\n"), failed };
}
