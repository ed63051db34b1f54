import type { Breakpoint, Condition, NewBreakpoint } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { useRefusal } from "../../rules/use-refusal.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import styles from "./breakpoints.module.css";

/** What the dialog holds; numbers as typed. */
export interface BreakpointDraft {
  readonly name: string;
  readonly condition: Condition;
  readonly direction: Breakpoint["direction"];
  readonly timeout: string;
  readonly priority: string;
}

const FIELDS = ["name", "condition", "direction", "timeout_secs", "priority"] as const;

function draftOf(start: Breakpoint | Partial<BreakpointDraft>): BreakpointDraft {
  if ("id" in start) {
    return {
      name: start.name,
      condition: start.condition,
      direction: start.direction,
      timeout: start.timeout_secs === null ? "" : String(start.timeout_secs),
      priority: String(start.priority),
    };
  }
  return {
    name: "",
    condition: { type: "host", pattern: "" },
    direction: "request",
    timeout: "60",
    priority: "100",
    ...start,
  };
}

function bodyOf(draft: BreakpointDraft, condition: Condition): NewBreakpoint {
  return {
    ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }),
    condition,
    direction: draft.direction,
    timeout_secs: draft.timeout.trim() === "" ? null : Number(draft.timeout),
    priority: Number(draft.priority),
  };
}

/** Creates or changes a breakpoint; what the service refuses is shown at its field. */
export function BreakpointDialog({
  start,
  onClose,
}: {
  readonly start: Breakpoint | Partial<BreakpointDraft>;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(start));
  const [condition, setCondition] = useState<Condition | null>(() =>
    draft.condition.type === "host" && draft.condition.pattern === "" ? null : draft.condition,
  );
  const id = "id" in start ? start.id : null;
  const save = useMutation({
    mutationFn: async (body: NewBreakpoint) => {
      if (id === null) await api.breakpoints.createBreakpoint({ body });
      else await api.breakpoints.updateBreakpoint({ params: { id }, body });
    },
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ["breakpoints"] });
      onClose();
    },
  });
  const refused = useRefusal(save.error, FIELDS);
  const set = (change: Partial<BreakpointDraft>): void => {
    setDraft({ ...draft, ...change });
    save.reset();
  };
  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      onSubmit={() => {
        if (condition !== null) save.mutate(bodyOf(draft, condition));
      }}
      title={id === null ? "New breakpoint" : "Change a breakpoint"}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={save.isPending || condition === null}>
            {id === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      <Field label="Name" hint="Without one it is called after its condition" error={refused.fields["name"]}>
        <TextInput maxLength={255} value={draft.name} onChange={(event) => set({ name: event.target.value })} />
      </Field>
      <ConditionBuilder
        initial={draft.condition}
        phase="both"
        error={refused.fields["condition"]}
        onChange={(next) => {
          setCondition(next);
          save.reset();
        }}
      />
      <MatchPreview condition={condition} direction={draft.direction} />
      <div className={styles["options"]}>
        <div className={styles["option"]}>
          <span className={styles["optionLabel"]}>Pause</span>
          <Segmented
            label="What is paused"
            value={draft.direction}
            options={[
              { value: "request", label: "Request" },
              { value: "response", label: "Answer" },
              { value: "both", label: "Both" },
            ]}
            onChange={(direction) => set({ direction })}
          />
        </div>
        <Field label="Continues after" hint="Seconds; empty waits for ever" error={refused.fields["timeout_secs"]}>
          <TextInput
            inputMode="numeric"
            maxLength={6}
            value={draft.timeout}
            onChange={(event) => set({ timeout: event.target.value })}
          />
        </Field>
        <Field label="Order" hint="The lowest that matches decides" error={refused.fields["priority"]}>
          <TextInput
            inputMode="numeric"
            maxLength={8}
            value={draft.priority}
            onChange={(event) => set({ priority: event.target.value })}
          />
        </Field>
      </div>
      {refused.general !== null && (
        <p className={styles["problem"]} role="alert">
          {refused.general}
        </p>
      )}
    </Dialog>
  );
}
