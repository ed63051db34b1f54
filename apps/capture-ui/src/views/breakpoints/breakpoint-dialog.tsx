import type { Breakpoint, Condition, NewBreakpoint } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { useMemo } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { ChangedElsewhere, Refused, type RuleDraft } from "../../rules/rule-editor.tsx";
import { DirectionField, NameField, OrderField } from "../../rules/rule-fields.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { useStoredDraft } from "../../rules/stored-draft.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import styles from "./breakpoints.module.css";

/** Form fields; numbers as typed. */
export interface BreakpointDraft {
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

function bodyOf(draft: BreakpointDraft, condition: Condition): NewBreakpoint {
  return {
    ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }),
    condition,
    direction: draft.direction,
    timeout_secs: draft.timeout.trim() === "" ? null : Number(draft.timeout),
    priority: Number(draft.priority),
  };
}

/** Creates or edits a breakpoint, with validation errors of the service at their fields. */
export function BreakpointDialog({
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
        if (condition !== null) save.mutate(bodyOf(draft, condition));
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
