import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { BodyEditor, HeadersEditor } from "../../rules/message-editor.tsx";
import { ConditionLines } from "../../rules/condition-builder.tsx";
import { OrderButtons } from "../../rules/rule-fields.tsx";
import { Button } from "../../ui/button.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import {
  type ConfigDraft,
  type ConfigKind,
  newResponse,
  RESPONSE_VOCABULARY,
  type ResponseDraft,
} from "./response-draft.ts";
import styles from "./mocks.module.css";

const KINDS: readonly { readonly value: ConfigKind; readonly label: string }[] = [
  { value: "single", label: "Single" },
  { value: "sequence", label: "Sequence" },
  { value: "conditional", label: "Conditional" },
  { value: "probabilistic", label: "Weighted" },
];

const ABOUT: Readonly<Record<ConfigKind, string>> = {
  single: "Always returns this response.",
  sequence: "Returns the responses in order.",
  conditional: "Returns the first response whose condition matches, otherwise the last one.",
  probabilistic: "Returns a random response, in proportion to the weights.",
};

export function ConfigEditor({
  draft,
  onChange,
}: {
  readonly draft: ConfigDraft;
  readonly onChange: (draft: ConfigDraft) => void;
}) {
  const { kind, responses } = draft;
  const shown = kind === "single" ? responses.slice(0, 1) : responses;
  const set = (index: number, response: ResponseDraft): void =>
    onChange({ ...draft, responses: responses.with(index, response) });
  const choose = (next: ConfigKind): void =>
    onChange({ ...draft, kind: next, responses: responses.length === 0 ? [newResponse()] : responses });
  return (
    <div className={styles["responses"]} role="group" aria-label="Responses">
      <div className={styles["kinds"]}>
        <span className={styles["label"]}>Response</span>
        <Segmented label="Response mode" value={kind} options={KINDS} onChange={choose} />
        <span className={styles["count"]}>{ABOUT[kind]}</span>
      </div>
      {shown.map((response, index) => (
        <div key={response.key} className={styles["response"]} role="group" aria-label={`Response ${index + 1}`}>
          <ResponseEditor draft={response} kind={kind} onChange={(next) => set(index, next)}>
            {kind !== "single" && (
              <OrderButtons
                items={responses}
                index={index}
                remove="Remove response"
                onChange={(next) => onChange({ ...draft, responses: next })}
              />
            )}
          </ResponseEditor>
        </div>
      ))}
      {kind !== "single" && (
        <div className={styles["kinds"]}>
          <Button
            icon={<Plus size={14} />}
            onClick={() => onChange({ ...draft, responses: [...responses, newResponse()] })}
          >
            Add response
          </Button>
          {kind === "sequence" && (
            <Switch
              label="Repeat from the first after the last"
              checked={draft.cycle}
              onChange={(cycle) => onChange({ ...draft, cycle })}
            />
          )}
        </div>
      )}
      {kind === "conditional" && (
        <div className={styles["response"]} role="group" aria-label="Otherwise">
          <b>Otherwise</b>
          <ResponseEditor
            draft={draft.otherwise}
            kind="single"
            onChange={(otherwise) => onChange({ ...draft, otherwise })}
          />
        </div>
      )}
    </div>
  );
}

function ResponseEditor({
  draft,
  kind,
  onChange,
  children,
}: {
  readonly draft: ResponseDraft;
  readonly kind: ConfigKind;
  readonly onChange: (draft: ResponseDraft) => void;
  readonly children?: ReactNode;
}) {
  const set = (change: Partial<ResponseDraft>): void => onChange({ ...draft, ...change });
  return (
    <>
      {kind === "conditional" && (
        <fieldset className={styles["when"]}>
          <legend>When</legend>
          <ConditionLines
            initial={draft.when.condition}
            isSided={false}
            vocabulary={RESPONSE_VOCABULARY}
            onChange={(condition) =>
              set({ when: { condition: condition ?? draft.when.condition, isWhole: condition !== null } })
            }
          />
        </fieldset>
      )}
      <div className={styles["responseHead"]}>
        <Field label="Status" className={styles["short"]}>
          <TextInput
            mono
            inputMode="numeric"
            maxLength={3}
            value={draft.status}
            onChange={(event) => set({ status: event.target.value })}
          />
        </Field>
        {kind === "probabilistic" && (
          <Field label="Weight" className={styles["short"]}>
            <TextInput
              mono
              inputMode="numeric"
              maxLength={7}
              value={draft.weight}
              onChange={(event) => set({ weight: event.target.value })}
            />
          </Field>
        )}
        <Field label="Delay, ms" className={styles["short"]}>
          <TextInput
            mono
            inputMode="numeric"
            maxLength={6}
            placeholder="0"
            value={draft.delayMs}
            onChange={(event) => set({ delayMs: event.target.value })}
          />
        </Field>
        <Field label="± ms" className={styles["short"]}>
          <TextInput
            mono
            inputMode="numeric"
            maxLength={6}
            placeholder="0"
            value={draft.varianceMs}
            onChange={(event) => set({ varianceMs: event.target.value })}
          />
        </Field>
        <span className={styles["grow"]} />
        {children}
      </div>
      <HeadersEditor label="Headers" drafts={draft.headers} onChange={(headers) => set({ headers })} />
      <div className={styles["kinds"]}>
        <Segmented
          label="Body source"
          value={draft.source}
          options={[
            { value: "body", label: "Inline" },
            { value: "file", label: "From file" },
          ]}
          onChange={(source) => set({ source })}
        />
        <Switch
          label="Expand {{request.path}}, {{uuid}} and other placeholders"
          checked={draft.template}
          onChange={(template) => set({ template })}
        />
      </div>
      {draft.source === "file" ? (
        <Field label="File" hint="On the machine running Weir, in one of the folders allowed in Settings">
          <TextInput mono value={draft.file} onChange={(event) => set({ file: event.target.value })} />
        </Field>
      ) : (
        <BodyEditor draft={draft.body} onChange={(body) => set({ body })} />
      )}
    </>
  );
}
