import type { Breakpoint, Condition, NewBreakpoint } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { Refused } from "../../rules/refused.tsx";
import { DirectionField, NameField, OrderField } from "../../rules/rule-fields.tsx";
import { useRefusal } from "../../rules/use-refusal.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
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
      <NameField
        hint="Without one it is called after its condition"
        value={draft.name}
        error={refused.fields["name"]}
        onChange={(name) => set({ name })}
      />
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
        <DirectionField
          label="Pause"
          about="What is paused"
          words={{ request: "Request", response: "Answer", both: "Both" }}
          value={draft.direction}
          onChange={(direction) => set({ direction })}
        />
        <Field label="Continues after" hint="Seconds; empty waits for ever" error={refused.fields["timeout_secs"]}>
          <TextInput
            inputMode="numeric"
            maxLength={6}
            value={draft.timeout}
            onChange={(event) => set({ timeout: event.target.value })}
          />
        </Field>
        <OrderField
          hint="The lowest that matches decides"
          value={draft.priority}
          error={refused.fields["priority"]}
          onChange={(priority) => set({ priority })}
        />
      </div>
      <Refused>{refused.general}</Refused>
    </Dialog>
  );
}
