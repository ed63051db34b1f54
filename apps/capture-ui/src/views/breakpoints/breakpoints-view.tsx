import { useQuery } from "@tanstack/react-query";
import { CirclePause, Plus } from "lucide-react";
import { useState } from "react";
import type { Breakpoint } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { breakpointsQuery, pauseAllQuery, pausedQuery, queryClient } from "../../queries.ts";
import { copyName } from "../../rules/from-entry.ts";
import { ruleColumns, useRuleList } from "../../rules/rule-list.tsx";
import { prefillOf, useFollowed, usePrefill } from "../../rules/rule-editor.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { Switch } from "../../ui/field.tsx";
import { ListTable } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { BreakpointDialog, type BreakpointDraft } from "./breakpoint-dialog.tsx";
import styles from "./breakpoints.module.css";
import { WaitingQueue } from "./waiting-queue.tsx";

const DIRECTIONS = { request: "request", response: "response", both: "request and response" } as const;

type Part = "waiting" | "rules";

/** Paused requests, and the breakpoints that pause them. */
export function BreakpointsView() {
  const { params } = useLocation();
  const paused = useQuery(pausedQuery);
  const count = paused.data?.length ?? 0;
  const [editing, setEditing] = useState<Breakpoint | Partial<BreakpointDraft> | null>(null);
  // The source entry of a new breakpoint comes from the URL, so that the form can be linked.
  const prefill = usePrefill();
  const param = params.get("part");
  const part: Part = param === "rules" || param === "waiting" ? param : "waiting";
  const add = (): void => setEditing({});
  const shown = prefill === null ? editing : prefillOf(prefill, params.get("direction"));
  const close = (): void => {
    setEditing(null);
    if (prefill !== null) setParams({ from: null, direction: null }, { replace: true });
  };
  return (
    <div className={styles["view"]}>
      <header className={styles["top"]}>
        <h1>Breakpoints</h1>
        <p>Requests and responses that match a rule are paused here until you decide.</p>
        <span className={styles["grow"]} />
        <PauseAllSwitch />
        <Button variant="primary" icon={<Plus size={14} />} onClick={add}>
          New breakpoint
        </Button>
      </header>
      <Tabs<Part>
        label="Breakpoint views"
        value={part}
        onChange={(next) => setParams({ part: next }, { replace: true })}
        tabs={[
          {
            value: "waiting",
            label: "Paused",
            count,
            content: () => <WaitingQueue onAdd={add} />,
          },
          { value: "rules", label: "Rules", content: () => <RuleList onEdit={setEditing} onAdd={add} /> },
        ]}
      />
      {shown !== null && <Editing key={keyOf(shown)} begun={shown} onClose={close} />}
    </div>
  );
}

type Begun = Breakpoint | Partial<BreakpointDraft>;

function keyOf(begun: Begun): string {
  return "id" in begun ? begun.id : "new";
}

/** The dialog of a breakpoint, which follows changes by other clients. */
function Editing({ begun, onClose }: { readonly begun: Begun; readonly onClose: () => void }) {
  const rules = useQuery(breakpointsQuery);
  const { item, isGone } = useFollowed<Begun>(begun, rules.data);
  return <BreakpointDialog start={"id" in begun ? item : begun} isGone={isGone} onClose={onClose} />;
}

/** Toggles pausing of all requests, whether or not a breakpoint matches. */
function PauseAllSwitch() {
  const state = useQuery(pauseAllQuery);
  const set = async (enabled: boolean): Promise<void> => {
    await attempt("Could not toggle pausing", async () => {
      queryClient.setQueryData(pauseAllQuery.queryKey, await api.breakpoints.pauseAll({ body: { enabled } }));
    });
  };
  if (state.data === undefined) return null;
  return <Switch checked={state.data.enabled} onChange={(on) => void set(on)} label="Pause everything" />;
}

function bodyOf({ name, condition, direction, enabled, priority, timeout_secs }: Breakpoint) {
  return { name, condition, direction, enabled, priority, timeout_secs };
}

function RuleList({ onEdit, onAdd }: { readonly onEdit: (rule: Breakpoint) => void; readonly onAdd: () => void }) {
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
            title="No breakpoints"
            icon={<CirclePause size={28} />}
            actions={
              <Button variant="primary" icon={<Plus size={14} />} onClick={onAdd}>
                New breakpoint
              </Button>
            }
          >
            Create one here, or from any request in Traffic.
          </EmptyState>
        }
        columns={ruleColumns<Breakpoint>({
          actions: { ...actions, edit: onEdit },
          between: [
            { title: "Pauses", kind: "quiet", from: "medium", cell: (rule) => DIRECTIONS[rule.direction] },
            {
              title: "Timeout",
              kind: "quiet",
              from: "wide",
              cell: (rule) => (rule.timeout_secs === null ? "none" : `${rule.timeout_secs} s`),
            },
          ],
        })}
      />
    </div>
  );
}
