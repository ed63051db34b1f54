import type { WsRule } from "@headworks/capture-contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, errorText } from "../../api.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { formatCount, isolatedName } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { ErrorState } from "../../ui/states.tsx";
import styles from "./streams.module.css";
import { changedRule, draftOfWsRule, NEW_RULE, ruleOf, ruleSentence } from "./ws-rule-draft.ts";
import type { WsRuleDraft } from "./ws-rule-draft.ts";
import { wsRulesQuery } from "../../queries.ts";

/** Lists the rules for WebSocket messages, with a form to create or edit one. */
export function WsRulesDialog({
  initial = NEW_RULE,
  onClose,
}: {
  readonly initial?: WsRuleDraft;
  readonly onClose: () => void;
}) {
  const client = useQueryClient();
  const rules = useQuery(wsRulesQuery);
  const [draft, setDraft] = useState<WsRuleDraft>(initial);
  const [edited, setEdited] = useState<WsRule | null>(null);
  const save = useMutation({
    mutationFn: async () =>
      edited === null
        ? await api["ws-traffic"].createWsRule({ body: ruleOf(draft) })
        : await api["ws-traffic"].updateWsRule({ params: { id: edited.id }, body: changedRule(edited, draft) }),
    onSuccess: async () => {
      begin(null);
      await client.invalidateQueries({ queryKey: wsRulesQuery.queryKey });
    },
  });
  const begin = (rule: WsRule | null): void => {
    setEdited(rule);
    setDraft(rule === null ? NEW_RULE : draftOfWsRule(rule));
    save.reset();
  };
  const set = (change: Partial<WsRuleDraft>): void => {
    setDraft({ ...draft, ...change });
    save.reset();
  };
  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      title="Rules for WebSocket messages"
      description="All matching rules apply, oldest first."
      onSubmit={() => save.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Done</Button>
          {edited !== null && <Button onClick={() => begin(null)}>Cancel</Button>}
          <Button
            type="submit"
            variant="primary"
            icon={edited === null ? <Plus size={14} /> : undefined}
            disabled={save.isPending}
          >
            {edited === null ? "Add rule" : "Save rule"}
          </Button>
        </>
      }
    >
      {rules.error !== null && <ErrorState title="Could not load the rules" error={rules.error} />}
      {(rules.data?.length ?? 0) > 0 && (
        <ul className={styles["rules"]} aria-label="Message rules">
          {rules.data?.map((rule) => (
            <Rule
              key={rule.id}
              rule={rule}
              isEdited={rule.id === edited?.id}
              onEdit={() => begin(rule)}
              onDeleted={() => {
                if (rule.id === edited?.id) begin(null);
              }}
            />
          ))}
        </ul>
      )}
      <RuleForm draft={draft} onChange={set} />
      {save.error !== null && (
        <p className={styles["problem"]} role="alert">
          {errorText(save.error)}
        </p>
      )}
    </Dialog>
  );
}

async function remove(rule: WsRule): Promise<boolean> {
  const done = await attempt("Could not delete the rule", () =>
    api["ws-traffic"].deleteWsRule({ params: { id: rule.id } }),
  );
  if (!done) return false;
  const { name, match, action, enabled } = rule;
  const restore = () => api["ws-traffic"].createWsRule({ body: { name, match, action, enabled } });
  toast({
    title: `${isolatedName(name)} deleted`,
    durationMs: 8000,
    action: { label: "Undo", onSelect: () => void attempt("Could not restore the rule", restore) },
  });
  return true;
}

function Rule({
  rule,
  isEdited,
  onEdit,
  onDeleted,
}: {
  readonly rule: WsRule;
  readonly isEdited: boolean;
  readonly onEdit: () => void;
  readonly onDeleted: () => void;
}) {
  const params = { id: rule.id };
  return (
    <li className={styles["rule"]} aria-current={isEdited || undefined}>
      <Switch
        aria-label={`${isolatedName(rule.name)} is enabled`}
        checked={rule.enabled}
        onChange={(enabled) =>
          void attempt("Could not change the rule", () => api["ws-traffic"].toggleWsRule({ params, body: { enabled } }))
        }
      />
      <span className={styles["ruleText"]}>
        <b>{rule.name}</b>
        <span>{ruleSentence(rule)}</span>
      </span>
      <span className={styles["quiet"]}>{rule.hit_count === 1 ? "1 hit" : `${formatCount(rule.hit_count)} hits`}</span>
      <IconButton
        label={`Edit ${isolatedName(rule.name)}`}
        icon={<Pencil size={14} />}
        pressed={isEdited}
        onClick={onEdit}
      />
      <IconButton
        label={`Delete ${isolatedName(rule.name)}`}
        icon={<Trash2 size={14} />}
        onClick={() => {
          void remove(rule).then((done) => {
            if (done) onDeleted();
          });
        }}
      />
    </li>
  );
}

function RuleForm({
  draft,
  onChange,
}: {
  readonly draft: WsRuleDraft;
  readonly onChange: (change: Partial<WsRuleDraft>) => void;
}) {
  return (
    <div className={styles["ruleForm"]}>
      <Field label="Name">
        <TextInput
          maxLength={255}
          placeholder="Optional. Generated if empty."
          value={draft.name}
          onChange={(event) => onChange({ name: event.target.value })}
        />
      </Field>
      <Field label="Host">
        <TextInput
          mono
          maxLength={255}
          placeholder="Any"
          value={draft.host}
          onChange={(event) => onChange({ host: event.target.value })}
        />
      </Field>
      <Field label="URL pattern">
        <TextInput
          mono
          maxLength={1000}
          placeholder="Any"
          value={draft.url}
          onChange={(event) => onChange({ url: event.target.value })}
        />
      </Field>
      <Field label="Text pattern">
        <TextInput
          mono
          maxLength={1000}
          placeholder="Any"
          value={draft.text}
          onChange={(event) => onChange({ text: event.target.value })}
        />
      </Field>
      <div className={styles["labelled"]}>
        <span aria-hidden>Messages</span>
        <Segmented
          label="Messages"
          value={draft.direction}
          options={[
            { value: "any", label: "All" },
            { value: "send", label: "Sent" },
            { value: "receive", label: "Received" },
          ]}
          onChange={(direction) => onChange({ direction })}
        />
      </div>
      <Field label="Action">
        <Select
          value={draft.action}
          options={[
            { value: "pause", label: "Pause" },
            { value: "replace", label: "Replace text" },
            { value: "drop", label: "Drop" },
            { value: "delay", label: "Delay" },
          ]}
          onChange={(action) => onChange({ action })}
        />
      </Field>
      {draft.action === "replace" && (
        <Field label="Replacement" hint="$1 and $& insert the matched text" className={styles["wide"]}>
          <TextArea
            mono
            rows={2}
            value={draft.replacement}
            onChange={(event) => onChange({ replacement: event.target.value })}
          />
        </Field>
      )}
      {draft.action === "delay" && (
        <Field label="Milliseconds" hint="1 to 60,000">
          <TextInput
            inputMode="numeric"
            value={draft.delayMs}
            onChange={(event) => onChange({ delayMs: event.target.value })}
          />
        </Field>
      )}
    </div>
  );
}
