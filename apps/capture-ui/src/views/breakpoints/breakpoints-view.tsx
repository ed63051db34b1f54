import type { Breakpoint, Condition, NewBreakpoint } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { CirclePause, Plus } from "lucide-react";
import { useMemo, useState } from "react";
import { api } from "../../api.ts";
import { breakpointsQuery, pauseAllQuery, pausedQuery, queryClient } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { copyName } from "../../rules/from-entry.ts";
import { MatchPreview } from "../../rules/match-preview.tsx";
import {
  ChangedElsewhere,
  prefillOf,
  Refused,
  type RuleDraft,
  useFollowed,
  usePrefill,
} from "../../rules/rule-editor.tsx";
import { DirectionField, NameField, OrderField } from "../../rules/rule-fields.tsx";
import { ruleColumns, useRuleList } from "../../rules/rule-list.tsx";
import { useStoredDraft } from "../../rules/stored-draft.ts";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { ListTable } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { attempt } from "../../ui/toast.tsx";
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

/** Form fields; numbers as typed. */
interface BreakpointDraft {
  readonly name: string;
  readonly condition: Condition;
  readonly direction: Breakpoint["direction"];
  readonly timeout: string;
  readonly priority: string;
}

const FIELDS = ["name", "condition", "direction", "timeout_secs", "priority"] as const;

function draftOf(start: Breakpoint | Partial<BreakpointDraft>): RuleDraft<BreakpointDraft> {
  if ("id" in start) {
    const { name, condition, direction, timeout_secs: timeoutS, priority } = start;
    const timeout = timeoutS === null ? "" : String(timeoutS);
    return { form: { name, condition, direction, timeout, priority: String(priority) }, condition };
  }
  const form: BreakpointDraft = {
    name: "",
    condition: { type: "host", pattern: "" },
    direction: "request",
    timeout: "60",
    priority: "100",
    ...start,
  };
  return { form, condition: start.condition ?? null };
}

function breakpointOf(draft: BreakpointDraft, condition: Condition): NewBreakpoint {
  return {
    ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }),
    condition,
    direction: draft.direction,
    timeout_secs: draft.timeout.trim() === "" ? null : Number(draft.timeout),
    priority: Number(draft.priority),
  };
}

/** Creates or edits a breakpoint, with validation errors of the service at their fields. */
function BreakpointDialog({
  start,
  isGone,
  onClose,
}: {
  /** Current version of the stored breakpoint, or the initial values of a new one. */
  readonly start: Breakpoint | Partial<BreakpointDraft>;
  readonly isGone: boolean;
  readonly onClose: () => void;
}) {
  const begun = useMemo(() => draftOf(start), [start]);
  const { id, enabled: isEnabled } = "id" in start ? start : { id: null, enabled: true };
  const name = `breakpoint ${id ?? `new ${begun.form.name}`}`;
  const stored = useStoredDraft<RuleDraft<BreakpointDraft>>(name, begun);
  const { form: draft, condition } = stored.draft;
  const close = (): void => {
    stored.release();
    onClose();
  };
  const save = useMutation({
    mutationFn: async (body: NewBreakpoint) => {
      if (id === null) await api.breakpoints.createBreakpoint({ body });
      else if (isGone) await api.breakpoints.createBreakpoint({ body: { ...body, enabled: isEnabled } });
      else await api.breakpoints.updateBreakpoint({ params: { id }, body });
    },
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ["breakpoints"] });
      close();
    },
  });
  const refused = fieldErrors(save.error, FIELDS);
  const write = (change: Partial<RuleDraft<BreakpointDraft>>): void => {
    stored.set({ ...stored.draft, ...change });
    save.reset();
  };
  const set = (change: Partial<BreakpointDraft>): void => write({ form: { ...draft, ...change } });
  return (
    <Dialog
      open
      size="wide"
      onClose={close}
      isUnsaved={stored.isChanged}
      onSubmit={() => {
        if (condition !== null) save.mutate(breakpointOf(draft, condition));
      }}
      title={id === null ? "New breakpoint" : "Edit breakpoint"}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={save.isPending || condition === null}>
            {id === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      {(isGone || stored.isOutdated) && !save.isPending && (
        <ChangedElsewhere noun="breakpoint" isGone={isGone} stored={stored} />
      )}
      <NameField
        hint="Optional. Defaults to the condition."
        value={draft.name}
        error={refused.fields["name"]}
        onChange={(name) => set({ name })}
      />
      <ConditionBuilder
        key={stored.revision}
        initial={condition ?? draft.condition}
        phase="both"
        error={refused.fields["condition"]}
        onChange={(next) => write({ condition: next })}
      />
      <MatchPreview condition={condition} direction={draft.direction} />
      <BreakpointOptions draft={draft} errors={refused.fields} set={set} />
      <Refused>{refused.general}</Refused>
    </Dialog>
  );
}

function BreakpointOptions({
  draft,
  errors,
  set,
}: {
  readonly draft: BreakpointDraft;
  readonly errors: Readonly<Record<string, string>>;
  readonly set: (change: Partial<BreakpointDraft>) => void;
}) {
  return (
    <div className={styles["options"]}>
      <DirectionField
        label="Pause"
        about="Messages to pause"
        words={{ request: "Request", response: "Response", both: "Both" }}
        value={draft.direction}
        onChange={(direction) => set({ direction })}
      />
      <Field label="Continues after" hint="Seconds. Leave empty to wait indefinitely." error={errors["timeout_secs"]}>
        <TextInput
          inputMode="numeric"
          maxLength={6}
          value={draft.timeout}
          onChange={(event) => set({ timeout: event.target.value })}
        />
      </Field>
      <OrderField
        hint="If several rules match, the lowest number wins."
        value={draft.priority}
        error={errors["priority"]}
        onChange={(priority) => set({ priority })}
      />
    </div>
  );
}
