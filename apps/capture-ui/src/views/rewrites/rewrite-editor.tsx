import type { Condition, NewRewriteRule, RewriteRule } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { useRefusal } from "../../rules/use-refusal.ts";
import { useAction } from "../../shell/actions.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { toast } from "../../ui/toast.tsx";
import { ActionsEditor } from "./action-editor.tsx";
import { DryRun } from "./dry-run.tsx";
import { ruleOf, type RewriteDraft } from "./rewrite-draft.ts";
import styles from "../../rules/workbench.module.css";

const FIELDS = ["name", "condition", "direction", "priority"] as const;
const NO_PROBLEMS: ReadonlyMap<number, string> = new Map();

/** Creates or changes a rewrite, and tries it on captured traffic. */
export function RewriteEditor({
  start,
  rule,
  entryId,
  onClose,
  onSaved,
}: {
  readonly start: RewriteDraft;
  /** The stored rule; null for a new one. */
  readonly rule: RewriteRule | null;
  /** The entry to try it on first. */
  readonly entryId: string | null;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const [draft, setDraft] = useState(start);
  const [condition, setCondition] = useState<Condition | null>(start.condition);
  const [tried, setTried] = useState(false);
  const built = ruleOf(draft, condition);
  const save = useMutation({
    mutationFn: async (body: NewRewriteRule): Promise<string> => {
      if (rule === null) return (await api.rewrites.createRewrite({ body })).id;
      await api.rewrites.updateRewrite({ params: { id: rule.id }, body: { ...body, enabled: rule.enabled } });
      return rule.id;
    },
    onSuccess: async (id) => {
      await queryClient.invalidateQueries({ queryKey: ["rewrites"] });
      toast({ tone: "success", title: `${draft.name.trim()} is saved` });
      onSaved(id);
    },
  });
  const refused = useRefusal(save.error, FIELDS);
  const set = (change: Partial<RewriteDraft>): void => {
    setDraft({ ...draft, ...change });
    save.reset();
  };
  useAction("close", onClose);
  return (
    <form
      className={styles["editor"]}
      aria-label={rule === null ? "New rewrite" : `Rewrite ${rule.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (built.ok) save.mutate(built.rule);
      }}
    >
      <div className={styles["editorHead"]}>
        <h2>{rule === null ? "New rewrite" : "Change a rewrite"}</h2>
        <span className={styles["grow"]} />
        {tried && !built.ok && <span className={styles["problem"]}>{built.message}</span>}
        <Button type="submit" variant="primary" disabled={save.isPending}>
          {rule === null ? "Create" : "Save"}
        </Button>
        <IconButton label="Close the editor" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div className={styles["editorBody"]} tabIndex={0} role="group" aria-label="The rule">
        <div className={styles["nameRow"]}>
          <Field label="Name" error={refused.fields["name"]}>
            <TextInput maxLength={255} value={draft.name} onChange={(event) => set({ name: event.target.value })} />
          </Field>
          <Field label="Order" hint="Lowest first" error={refused.fields["priority"]}>
            <TextInput
              inputMode="numeric"
              maxLength={8}
              value={draft.priority}
              onChange={(event) => set({ priority: event.target.value })}
            />
          </Field>
        </div>
        <ConditionBuilder
          initial={start.condition}
          phase="both"
          error={refused.fields["condition"]}
          onChange={(next) => {
            setCondition(next);
            save.reset();
          }}
        />
        <MatchPreview condition={condition} direction={draft.direction} />
        <div className={styles["option"]}>
          <span className={styles["optionLabel"]}>Changes</span>
          <Segmented
            label="Which messages are changed"
            value={draft.direction}
            options={[
              { value: "request", label: "Requests" },
              { value: "response", label: "Answers" },
              { value: "both", label: "Both" },
            ]}
            onChange={(direction) => set({ direction })}
          />
        </div>
        <ActionsEditor
          drafts={draft.actions}
          problems={tried && !built.ok ? built.problems : NO_PROBLEMS}
          onChange={(actions) => set({ actions })}
        />
        {refused.general !== null && (
          <p className={styles["problem"]} role="alert">
            {refused.general}
          </p>
        )}
        <DryRun rule={built.ok ? built.rule : null} entryId={entryId} />
      </div>
    </form>
  );
}
