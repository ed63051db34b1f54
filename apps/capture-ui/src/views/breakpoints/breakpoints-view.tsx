import type { Breakpoint } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { breakpointsQuery, pausedQuery } from "../../queries.ts";
import { useFollowed } from "../../rules/use-followed.ts";
import { prefillOf, usePrefill } from "../../rules/use-prefill.ts";
import { setParams, usePlace } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { BreakpointDialog, type BreakpointDraft } from "./breakpoint-dialog.tsx";
import styles from "./breakpoints.module.css";
import { PauseAllSwitch } from "./pause-all.tsx";
import { RuleList } from "./rule-list.tsx";
import { WaitingQueue } from "./waiting-queue.tsx";

type Part = "waiting" | "rules";

/** Exchanges that wait for a decision, and the rules that make them wait. */
export function BreakpointsView() {
  const { params } = usePlace();
  const paused = useQuery(pausedQuery);
  const count = paused.data?.length ?? 0;
  const [editing, setEditing] = useState<Breakpoint | Partial<BreakpointDraft> | null>(null);
  // A rule made from an entry comes with the address, so that the way here can be linked.
  const prefill = usePrefill();
  const asked = params.get("part");
  const part: Part = asked === "rules" || asked === "waiting" ? asked : "waiting";
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
        <p>Requests and answers that a rule matches wait here until you decide.</p>
        <span className={styles["grow"]} />
        <PauseAllSwitch />
        <Button variant="primary" icon={<Plus size={14} />} onClick={add}>
          New breakpoint
        </Button>
      </header>
      <Tabs<Part>
        label="Parts of the screen"
        value={part}
        onChange={(next) => setParams({ part: next }, { replace: true })}
        tabs={[
          {
            value: "waiting",
            label: "Waiting",
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

/** The window of a breakpoint, which follows what becomes of it elsewhere. */
function Editing({ begun, onClose }: { readonly begun: Begun; readonly onClose: () => void }) {
  const rules = useQuery(breakpointsQuery);
  const { item, isGone } = useFollowed<Begun>(begun, rules.data);
  return <BreakpointDialog start={"id" in begun ? item : begun} isGone={isGone} onClose={onClose} />;
}
