import type { NewRewriteRule, RewriteAction, RewriteDryRunResult, RewriteRule } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { Play, Plus } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { bodyLines, headLines } from "../../rules/message-text.ts";
import { EditorBody, Failed, Refused, type RuleDraft, RuleEditor, useRuleForm } from "../../rules/rule-editor.tsx";
import { DirectionField, EntryPicker, NameField, OrderButtons, OrderField } from "../../rules/rule-fields.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Button } from "../../ui/button.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { Menu } from "../../ui/menu.tsx";
import {
  type ActionDraft,
  type ActionField,
  ACTIONS,
  newAction,
  type RewriteDraft,
  ruleOf,
  withType,
} from "./rewrite-draft.ts";
import styles from "./rewrites.module.css";

const FIELDS = ["name", "condition", "direction", "priority"] as const;
const NO_PROBLEMS: ReadonlyMap<number, string> = new Map();

/** Creates or edits a rewrite, and tests it on captured traffic. */
export function RewriteEditor({
  name,
  start,
  rule,
  entryId,
  onClose,
  onSaved,
}: {
  readonly name: string;
  readonly start: RuleDraft<RewriteDraft>;
  /** The stored rule; null for a new one. */
  readonly rule: RewriteRule | null;
  /** The entry tested first. */
  readonly entryId: string | null;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const { draft, condition, revision, built, tried, refused, set, setCondition, editor } = useRuleForm({
    name,
    start,
    topic: "rewrites",
    fields: FIELDS,
    build: ruleOf,
    onSaved,
    save: async (body: NewRewriteRule) => {
      if (rule === null) return (await api.rewrites.createRewrite({ body })).id;
      await api.rewrites.updateRewrite({ params: { id: rule.id }, body: { ...body, enabled: rule.enabled } });
      return rule.id;
    },
  });
  return (
    <RuleEditor noun="rewrite" name={rule?.name ?? null} {...editor} onClose={onClose}>
      <EditorBody>
        <div className={styles["nameRow"]}>
          <NameField value={draft.name} error={refused.fields["name"]} onChange={(name) => set({ name })} />
          <OrderField
            hint="Lowest number first"
            value={draft.priority}
            error={refused.fields["priority"]}
            onChange={(priority) => set({ priority })}
          />
        </div>
        <ConditionBuilder
          key={revision}
          initial={condition ?? draft.condition}
          phase="both"
          error={refused.fields["condition"]}
          onChange={setCondition}
        />
        <MatchPreview condition={condition} direction={draft.direction} />
        <DirectionField
          label="Applies to"
          about="Messages to rewrite"
          words={{ request: "Requests", response: "Responses", both: "Both" }}
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

/** Tests the current rule on a captured entry; nothing is sent or stored. */
function DryRun({ rule, entryId }: { readonly rule: NewRewriteRule | null; readonly entryId: string | null }) {
  const [chosen, setChosen] = useState<string | null>(entryId);
  const run = useMutation({
    mutationFn: (body: { readonly entry_id: string; readonly rule: NewRewriteRule }) =>
      api.rewrites.dryRunRewrite({ body }),
  });
  const start = (): void => {
    if (rule !== null && chosen !== null) run.mutate({ entry_id: chosen, rule });
  };
  return (
    <section className={styles["try"]} aria-label="Test">
      <h3>Test on captured traffic</h3>
      <div className={styles["tryLine"]}>
        <EntryPicker value={chosen} onChange={setChosen} />
        <Button icon={<Play size={13} />} disabled={rule === null || chosen === null || run.isPending} onClick={start}>
          Test
        </Button>
      </div>
      {rule === null && <p className={shared["quiet"]}>Complete the rule first.</p>}
      <Failed error={run.error} />
      {run.data !== undefined && <Outcome result={run.data} />}
    </section>
  );
}

function Outcome({ result }: { readonly result: RewriteDryRunResult }) {
  const { request, response } = result;
  return (
    <div className={styles["outcome"]}>
      <p role="status">
        {!result.matched
          ? "The rule does not match this request."
          : result.changed
            ? "The rule matches and makes these changes:"
            : "The rule matches but changes nothing."}
      </p>
      {result.trace.length > 0 && (
        <ul className={shared["changes"]}>
          {result.trace
            .flatMap((step) => step.changes)
            .map((change, index) => (
              <li key={`${index}`}>{change}</li>
            ))}
        </ul>
      )}
      {result.changed && (
        <>
          <h4>Request</h4>
          <DiffView
            label="Changes to the request"
            same="The request is unchanged."
            left={[...headLines(request.before), "", ...bodyLines(request.before)]}
            right={[...headLines(request.after), "", ...bodyLines(request.after)]}
          />
          {response !== null && (
            <>
              <h4>Response</h4>
              <DiffView
                label="Changes to the response"
                same="The response is unchanged."
                left={
                  response.before === null ? [] : [...headLines(response.before), "", ...bodyLines(response.before)]
                }
                right={[...headLines(response.after), "", ...bodyLines(response.after)]}
              />
            </>
          )}
        </>
      )}
    </div>
  );
}

const TYPES = (Object.keys(ACTIONS) as RewriteAction["type"][]).map((value) => ({
  value,
  label: ACTIONS[value].label,
}));

const ABOUT = { request: "requests only", response: "responses only", both: null } as const;

function ActionsEditor({
  drafts,
  problems,
  onChange,
}: {
  readonly drafts: readonly ActionDraft[];
  readonly problems: ReadonlyMap<number, string>;
  readonly onChange: (drafts: readonly ActionDraft[]) => void;
}) {
  return (
    <fieldset className={styles["actions"]}>
      <legend>Then</legend>
      {drafts.map((draft, index) => (
        <div key={draft.key} className={styles["action"]} role="group" aria-label={`Step ${index + 1}`}>
          <div className={styles["actionHead"]}>
            <span className={styles["actionType"]}>
              <Select
                aria-label={`Action of step ${index + 1}`}
                value={draft.type}
                options={TYPES}
                onChange={(type) => onChange(drafts.with(index, withType(draft, type)))}
              />
            </span>
            <span className={shared["quiet"]}>{ABOUT[ACTIONS[draft.type].about]}</span>
            <span className={shared["grow"]} />
            <OrderButtons items={drafts} index={index} remove="Remove step" onChange={onChange} />
          </div>
          <div className={styles["actionFields"]}>
            {ACTIONS[draft.type].fields.map((field) => (
              <ActionInput
                key={field.name}
                field={field}
                value={draft.values[field.name] ?? ""}
                onChange={(value) =>
                  onChange(drafts.with(index, { ...draft, values: { ...draft.values, [field.name]: value } }))
                }
              />
            ))}
          </div>
          {problems.get(draft.key) !== undefined && <p className={shared["problem"]}>{problems.get(draft.key)}</p>}
        </div>
      ))}
      <div>
        <Menu
          trigger={
            <Button variant="ghost" icon={<Plus size={14} />}>
              Add step
            </Button>
          }
          items={() =>
            TYPES.map(({ value, label }) => ({
              kind: "item" as const,
              label,
              onSelect: () => onChange([...drafts, newAction(value)]),
            }))
          }
        />
      </div>
    </fieldset>
  );
}

function ActionInput({
  field,
  value,
  onChange,
}: {
  readonly field: ActionField;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  switch (field.kind) {
    case "switch":
      return (
        <span className={styles["wide"]}>
          <Switch
            label={field.label}
            checked={value === "true"}
            onChange={(checked) => onChange(checked ? "true" : "")}
          />
        </span>
      );
    case "flags":
      return (
        <div className={styles["flags"]} role="group" aria-label={field.label}>
          {FLAGS.map(({ letter, label }) => (
            <Button
              key={letter}
              pressed={value.includes(letter)}
              title={label}
              aria-label={label}
              onClick={() => onChange(value.includes(letter) ? value.replaceAll(letter, "") : value + letter)}
            >
              {letter}
            </Button>
          ))}
        </div>
      );
    case "lines":
    case "json":
      return (
        <Field label={field.label} className={styles["wide"]}>
          <TextArea
            mono
            rows={field.kind === "json" ? 3 : 5}
            spellCheck={false}
            placeholder={field.example}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
      );
    case "text":
    case "number":
      return (
        <Field label={field.label}>
          <TextInput
            mono
            placeholder={field.example}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
      );
  }
}

const FLAGS = [
  { letter: "i", label: "Ignore case" },
  { letter: "m", label: "Multiline: ^ and $ match at each line" },
  { letter: "s", label: "Dot matches newlines" },
] as const;
