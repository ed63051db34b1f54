import type { TrafficSummary } from "@headworks/capture-contract";
import { formatCount } from "../../../ui/format.ts";
import { Pill } from "../../../ui/pill.tsx";
import { PILLS, type PillId } from "./effective-query.ts";

/** Number of entries matching a pill; hidden if zero, to save space. */
function countOf(summary: TrafficSummary | undefined, pill: (typeof PILLS)[number]): string | undefined {
  if (summary === undefined) return undefined;
  const count =
    pill.id === "errors" ? summary.errors : pill.types.reduce((sum, type) => sum + (summary.by_type[type] ?? 0), 0);
  return count === 0 ? undefined : formatCount(count);
}

/** Type filters. Several can be active; `summary` counts without them. */
export function TypePills({
  pills,
  summary,
  onChange,
}: {
  readonly pills: readonly PillId[];
  readonly summary: TrafficSummary | undefined;
  readonly onChange: (pills: readonly PillId[]) => void;
}) {
  return (
    <>
      <Pill
        pressed={pills.length === 0}
        count={summary === undefined ? undefined : formatCount(summary.matched)}
        onClick={() => onChange([])}
      >
        All
      </Pill>
      {PILLS.map((pill) => (
        <Pill
          key={pill.id}
          pressed={pills.includes(pill.id)}
          tone={pill.id === "errors" ? "error" : "default"}
          count={countOf(summary, pill)}
          onClick={() =>
            onChange(pills.includes(pill.id) ? pills.filter((other) => other !== pill.id) : [...pills, pill.id])
          }
        >
          {pill.label}
        </Pill>
      ))}
    </>
  );
}
