import type { Breakpoint } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { CirclePause, Plus } from "lucide-react";
import { api } from "../../api.ts";
import { breakpointsQuery } from "../../queries.ts";
import { copyName } from "../../rules/from-entry.ts";
import { ruleColumns } from "../../rules/rule-columns.tsx";
import { useRuleList } from "../../rules/use-rule-list.ts";
import { Button } from "../../ui/button.tsx";
import { ListTable } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import styles from "./breakpoints.module.css";

const DIRECTIONS = { request: "request", response: "answer", both: "request and answer" } as const;

function bodyOf({ name, condition, direction, enabled, priority, timeout_secs }: Breakpoint) {
  return { name, condition, direction, enabled, priority, timeout_secs };
}

/** The rules that make exchanges wait. */
export function RuleList({
  onEdit,
  onAdd,
}: {
  readonly onEdit: (rule: Breakpoint) => void;
  readonly onAdd: () => void;
}) {
  const rules = useQuery({ ...breakpointsQuery, refetchInterval: 5000 });
  const actions = useRuleList<Breakpoint>({
    topic: "breakpoints",
    toggle: (rule, enabled) => api.breakpoints.toggleBreakpoint({ params: { id: rule.id }, body: { enabled } }),
    remove: (rule) => api.breakpoints.deleteBreakpoint({ params: { id: rule.id } }),
    restore: (rule) => api.breakpoints.createBreakpoint({ body: bodyOf(rule) }),
    duplicate: (rule) => api.breakpoints.createBreakpoint({ body: { ...bodyOf(rule), name: copyName(rule.name) } }),
  });
  return (
    <div className={styles["rules"]}>
      <ListTable
        label="Breakpoints"
        list={rules}
        isOff={(rule) => !rule.enabled}
        empty={
          <EmptyState
            title="There are no breakpoints"
            icon={<CirclePause size={28} />}
            actions={
              <Button variant="primary" icon={<Plus size={14} />} onClick={onAdd}>
                New breakpoint
              </Button>
            }
          >
            Make one here, or from any row of the traffic.
          </EmptyState>
        }
        columns={ruleColumns<Breakpoint>({
          actions: { ...actions, edit: onEdit },
          between: [
            { title: "Pauses", kind: "quiet", from: "medium", cell: (rule) => DIRECTIONS[rule.direction] },
            {
              title: "Waits",
              kind: "quiet",
              from: "wide",
              cell: (rule) => (rule.timeout_secs === null ? "for ever" : `${rule.timeout_secs} s`),
            },
          ],
        })}
      />
    </div>
  );
}
