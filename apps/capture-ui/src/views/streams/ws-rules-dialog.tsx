// Tested by ../../../../../e2e/ui-streams-websocket.test.ts
import type { WsRule } from "@headworks/capture-contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, errorText } from "../../api.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { formatCount } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { ErrorState } from "../../ui/states.tsx";
import styles from "./streams.module.css";
import { NEW_RULE, ruleOf, ruleSentence } from "./ws-rule-draft.ts";
import type { WsRuleDraft } from "./ws-rule-draft.ts";
import { wsRulesQuery } from "./ws-queries.ts";

/** Rules for messages of WebSocket connections: which there are, and a form for one more. */
export function WsRulesDialog({
  initial = NEW_RULE,
  onClose,
}: {
  /** What the form begins with. */
  readonly initial?: WsRuleDraft;
  readonly onClose: () => void;
}) {
  const client = useQueryClient();
  const rules = useQuery(wsRulesQuery);
  const [draft, setDraft] = useState<WsRuleDraft>(initial);
  const create = useMutation({
    mutationFn: () => api["ws-traffic"].createWsRule({ body: ruleOf(draft) }),
    onSuccess: async () => {
      setDraft(NEW_RULE);
      await client.invalidateQueries({ queryKey: wsRulesQuery.queryKey });
    },
  });
  const set = (change: Partial<WsRuleDraft>): void => {
    setDraft({ ...draft, ...change });
    create.reset();
  };
  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      title="Rules for WebSocket messages"
      description="All rules that match a message apply to it, the oldest first."
      onSubmit={() => create.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Done</Button>
          <Button type="submit" variant="primary" icon={<Plus size={14} />} disabled={create.isPending}>
            Add the rule
          </Button>
        </>
      }
    >
      {rules.error !== null && <ErrorState title="The rules cannot be loaded" error={rules.error} />}
      {(rules.data?.length ?? 0) > 0 && (
        <ul className={styles["rules"]} aria-label="Message rules">
          {rules.data?.map((rule) => (
            <Rule key={rule.id} rule={rule} />
          ))}
        </ul>
      )}
      <RuleForm draft={draft} onChange={set} />
      {create.error !== null && (
        <p className={styles["problem"]} role="alert">
          {errorText(create.error)}
        </p>
      )}
    </Dialog>
  );
}

function Rule({ rule }: { readonly rule: WsRule }) {
  const params = { id: rule.id };
  return (
    <li className={styles["rule"]}>
      <Switch
        aria-label={`${rule.name} is on`}
        checked={rule.enabled}
        onChange={(enabled) =>
          void attempt("The rule was not changed", () => api["ws-traffic"].toggleWsRule({ params, body: { enabled } }))
        }
      />
      <span className={styles["ruleText"]}>
        <b>{rule.name}</b>
        <span>{ruleSentence(rule)}</span>
      </span>
      <span className={styles["quiet"]}>{rule.hit_count === 1 ? "1 hit" : `${formatCount(rule.hit_count)} hits`}</span>
      <IconButton
        label={`Delete ${rule.name}`}
        icon={<Trash2 size={14} />}
        onClick={() => void attempt("The rule was not deleted", () => api["ws-traffic"].deleteWsRule({ params }))}
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
          placeholder="Made up if left empty"
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
        <span aria-hidden>Which messages</span>
        <Segmented
          label="Which messages"
          value={draft.direction}
          options={[
            { value: "any", label: "All" },
            { value: "send", label: "Sent" },
            { value: "receive", label: "Received" },
          ]}
          onChange={(direction) => onChange({ direction })}
        />
      </div>
      <Field label="What happens">
        <Select
          value={draft.action}
          options={[
            { value: "pause", label: "Wait for my decision" },
            { value: "replace", label: "Replace text" },
            { value: "drop", label: "Leave out" },
            { value: "delay", label: "Delay" },
          ]}
          onChange={(action) => onChange({ action })}
        />
      </Field>
      {draft.action === "replace" && (
        <Field label="Replacement" hint="$1 and $& stand for what was found" className={styles["wide"]}>
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
