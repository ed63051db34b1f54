import type { TrafficSummary } from "@headworks/capture-contract";
import { BarChart3, Bookmark, Columns3, Download, Focus, PanelBottom, PanelRight, Trash2, Upload } from "lucide-react";
import type { RefObject } from "react";
import { setPreferences, usePreferences } from "../../preferences.ts";
import { activeSessionId } from "../../queries.ts";
import { keysOf } from "../../shell/actions.ts";
import { exportHar, exportSession } from "../../transfer/export.ts";
import { chooseAndImport } from "../../transfer/import.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { formatCount } from "../../ui/format.ts";
import { Menu, type MenuEntry } from "../../ui/menu.tsx";
import { Pill } from "../../ui/pill.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { columnMenu } from "./list/header.tsx";
import { type PillId, PILLS } from "./query/effective-query.ts";
import { QueryBar } from "./query/query-bar.tsx";
import styles from "./traffic.module.css";
import type { ViewMode, useViewState } from "./use-view-state.ts";

const MODES: readonly { readonly value: ViewMode; readonly label: string }[] = [
  { value: "list", label: "List" },
  { value: "tree", label: "Tree" },
  { value: "waterfall", label: "Waterfall" },
];

/** Filter, pills, modes, and actions on the whole list. */
export function Toolbar({
  view,
  queryInput,
  effective,
  busy,
  problem,
  pillSummary,
  selectedIds,
  hasFocusPatterns,
  onLeaveQuery,
  onSaveView,
  onClear,
}: {
  readonly view: ReturnType<typeof useViewState>;
  readonly queryInput: RefObject<HTMLInputElement | null>;
  readonly effective: string;
  readonly busy: boolean;
  readonly problem: string | undefined;
  readonly pillSummary: TrafficSummary | undefined;
  readonly selectedIds: ReadonlySet<string>;
  readonly hasFocusPatterns: boolean;
  readonly onLeaveQuery: () => void;
  readonly onSaveView: () => void;
  readonly onClear: () => void;
}) {
  const exportMenu = (): readonly MenuEntry[] => [
    ...(selectedIds.size > 1
      ? [
          {
            kind: "item" as const,
            label: `Selected requests (HAR, ${formatCount(selectedIds.size)})`,
            onSelect: () => void exportHar({ ids: [...selectedIds] }),
          },
        ]
      : []),
    {
      kind: "item",
      label: effective === "" ? "All requests (HAR)" : "Filtered requests (HAR)",
      onSelect: () => void exportHar({ q: effective, session: view.session }),
    },
    {
      kind: "item",
      label: "Full session (Weir format)",
      onSelect: () => void exportSession(view.session ?? activeSessionId()),
    },
  ];
  return (
    <>
      <div className={styles["queryRow"]}>
        <QueryBar
          inputRef={queryInput}
          q={view.q}
          onChange={view.setQ}
          busy={busy}
          problem={problem}
          onLeave={onLeaveQuery}
        />
        <Button
          className={styles["optional"]}
          icon={<Bookmark size={14} />}
          aria-label="Save view"
          disabled={view.q.trim() === ""}
          onClick={onSaveView}
        >
          <span className={styles["label"]}>Save view</span>
        </Button>
        <Button
          className={styles["optional"]}
          icon={<Upload size={14} />}
          aria-label="Import"
          onClick={chooseAndImport}
        >
          <span className={styles["label"]}>Import</span>
        </Button>
        <Menu
          align="end"
          items={exportMenu}
          trigger={
            <Button icon={<Download size={14} />} aria-label="Export">
              <span className={styles["label"]}>Export</span>
            </Button>
          }
        />
      </div>
      <div className={styles["pillRow"]}>
        <div className={styles["pills"]} role="group" aria-label="Traffic types">
          <TypePills pills={view.pills} summary={pillSummary} onChange={view.setPills} />
        </div>
        <Tools view={view} hasFocusPatterns={hasFocusPatterns} onClear={onClear} />
      </div>
    </>
  );
}

function Tools({
  view,
  hasFocusPatterns,
  onClear,
}: {
  readonly view: ReturnType<typeof useViewState>;
  readonly hasFocusPatterns: boolean;
  readonly onClear: () => void;
}) {
  const { overview, detailLayout, focusOnly } = usePreferences();
  return (
    <div className={styles["tools"]}>
      {hasFocusPatterns && (
        <IconButton
          label={focusOnly ? "Show all hosts" : "Show focused hosts only"}
          keys={keysOf("list.focusOnly")}
          icon={<Focus size={15} />}
          pressed={focusOnly}
          onClick={() => setPreferences({ focusOnly: !focusOnly })}
        />
      )}
      <IconButton
        className={styles["optional"]}
        label="Traffic over time"
        icon={<BarChart3 size={15} />}
        pressed={overview}
        onClick={() => setPreferences({ overview: !overview })}
      />
      <IconButton
        className={styles["optional"]}
        label={detailLayout === "right" ? "Details below" : "Details on the right"}
        keys={keysOf("detail.layout")}
        icon={detailLayout === "right" ? <PanelBottom size={15} /> : <PanelRight size={15} />}
        onClick={() => setPreferences({ detailLayout: detailLayout === "right" ? "bottom" : "right" })}
      />
      <Menu
        align="end"
        items={columnMenu}
        trigger={<IconButton className={styles["optional"]} label="Columns" icon={<Columns3 size={15} />} />}
      />
      <IconButton label="Clear session" keys={keysOf("list.clear")} icon={<Trash2 size={15} />} onClick={onClear} />
      <Segmented label="View" value={view.mode} options={MODES} onChange={view.setMode} />
    </div>
  );
}

/** Number of entries matching a pill; hidden if zero, to save space. */
function countOf(summary: TrafficSummary | undefined, pill: (typeof PILLS)[number]): string | undefined {
  if (summary === undefined) return undefined;
  const count =
    pill.id === "errors" ? summary.errors : pill.types.reduce((sum, type) => sum + (summary.by_type[type] ?? 0), 0);
  return count === 0 ? undefined : formatCount(count);
}

/** Type filters. Several can be active; `summary` counts without them. */
function TypePills({
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
