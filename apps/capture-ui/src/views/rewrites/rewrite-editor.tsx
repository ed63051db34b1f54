import type { Condition, NewRewriteRule, RewriteRule } from "@headworks/capture-contract";
import { useState } from "react";
import { api } from "../../api.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { Refused } from "../../rules/refused.tsx";
import { EditorBody, RuleEditor } from "../../rules/rule-editor.tsx";
import { DirectionField, NameField, OrderField } from "../../rules/rule-fields.tsx";
import { useRuleSave } from "../../rules/use-rule-save.ts";
import { useStoredDraft } from "../../rules/use-stored-draft.ts";
import { ActionsEditor } from "./action-editor.tsx";
import { DryRun } from "./dry-run.tsx";
import { ruleOf, type RewriteDraft } from "./rewrite-draft.ts";
import styles from "./rewrites.module.css";

/** A rewrite as it is written: the condition apart, for it may be half written. */
export interface Writing {
  readonly form: RewriteDraft;
  readonly condition: Condition | null;
}

const FIELDS = ["name", "condition", "direction", "priority"] as const;
const NO_PROBLEMS: ReadonlyMap<number, string> = new Map();

/** Creates or changes a rewrite, and tries it on captured traffic. */
export function RewriteEditor({
  name,
  start,
  rule,
  entryId,
  onClose,
  onSaved,
}: {
  /** Under which an unsaved draft is kept. */
  readonly name: string;
  /** The same object until the stored rule changes. */
  readonly start: Writing;
  /** The stored rule; null for a new one. */
  readonly rule: RewriteRule | null;
  /** The entry to try it on first. */
  readonly entryId: string | null;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const stored = useStoredDraft<Writing>(name, start);
  const { form: draft, condition } = stored.draft;
  const [tried, setTried] = useState(false);
  const built = ruleOf(draft, condition);
  const { save, refused } = useRuleSave<NewRewriteRule, Writing>({
    topic: "rewrites",
    fields: FIELDS,
    stored,
    onSaved,
    save: async (body) => {
      if (rule === null) return (await api.rewrites.createRewrite({ body })).id;
      await api.rewrites.updateRewrite({ params: { id: rule.id }, body: { ...body, enabled: rule.enabled } });
      return rule.id;
    },
  });
  const set = (change: Partial<RewriteDraft>): void => {
    stored.set({ form: { ...draft, ...change }, condition });
    save.reset();
  };
  return (
    <RuleEditor
      noun="rewrite"
      name={rule?.name ?? null}
      problem={tried && !built.ok ? built.message : null}
      isSaving={save.isPending}
      stored={stored}
      onSubmit={() => {
        setTried(true);
        if (built.ok) save.mutate(built.rule);
      }}
      onClose={onClose}
    >
      <EditorBody>
        <div className={styles["nameRow"]}>
          <NameField value={draft.name} error={refused.fields["name"]} onChange={(name) => set({ name })} />
          <OrderField
            hint="Lowest first"
            value={draft.priority}
            error={refused.fields["priority"]}
            onChange={(priority) => set({ priority })}
          />
        </div>
        <ConditionBuilder
          key={stored.revision}
          initial={condition ?? draft.condition}
          phase="both"
          error={refused.fields["condition"]}
          onChange={(next) => {
            stored.set({ form: draft, condition: next });
            save.reset();
          }}
        />
        <MatchPreview condition={condition} direction={draft.direction} />
        <DirectionField
          label="Changes"
          about="Which messages are changed"
          words={{ request: "Requests", response: "Answers", both: "Both" }}
          value={draft.direction}
          onChange={(direction) => set({ direction })}
        />
        <ActionsEditor
          drafts={draft.actions}
          problems={tried && !built.ok ? built.problems : NO_PROBLEMS}
          onChange={(actions) => set({ actions })}
        />
        <Refused>{refused.general}</Refused>
        <DryRun rule={built.ok ? built.rule : null} entryId={entryId} />
      </EditorBody>
    </RuleEditor>
  );
}
