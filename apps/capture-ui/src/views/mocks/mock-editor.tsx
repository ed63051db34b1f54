import type { Condition, MockRule, NewMock } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { mockCollectionsQuery } from "../../queries.ts";
import { ConditionBuilder } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { Refused } from "../../rules/refused.tsx";
import { RuleEditor, ScrollBody } from "../../rules/rule-editor.tsx";
import { NameField, OrderField } from "../../rules/rule-fields.tsx";
import { useRuleSave } from "../../rules/use-rule-save.ts";
import { useStoredDraft } from "../../rules/use-stored-draft.ts";
import { Field, Select, TextArea, TextInput } from "../../ui/field.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { HitsTab } from "./hits-tab.tsx";
import { mockOf, type MockDraft } from "./mock-draft.ts";
import styles from "./mocks.module.css";
import { ConfigEditor } from "./response-editor.tsx";
import { TryTab } from "./try-tab.tsx";
import { VersionsTab } from "./versions-tab.tsx";

const FIELDS = ["name", "condition", "response_schema", "expiration", "priority"] as const;

/** A mock as it is written: the condition apart, for it may be half written. */
export interface Writing {
  readonly form: MockDraft;
  readonly condition: Condition | null;
}

/** A tab of the editor of a stored mock. */
export type MockPart = "rule" | "try" | "versions" | "hits";

/** Creates or changes a mock; tries it, and shows what it was and what it answered. */
export function MockEditor({
  name,
  start,
  rule,
  part,
  onPart,
  onClose,
  onSaved,
}: {
  /** Under which an unsaved draft is kept. */
  readonly name: string;
  /** The same object until the stored mock changes. */
  readonly start: Writing;
  /** The stored rule; null for a new one. */
  readonly rule: MockRule | null;
  /** The tab that is shown. */
  readonly part: MockPart;
  readonly onPart: (part: MockPart) => void;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const stored = useStoredDraft<Writing>(name, start);
  const { form: draft, condition } = stored.draft;
  const [tried, setTried] = useState(false);
  const built = mockOf(draft, condition);
  const { save, refused } = useRuleSave<NewMock, Writing>({
    topic: "mocks",
    fields: FIELDS,
    stored,
    onSaved,
    save: async (body) => {
      if (rule === null) return (await api.mocks.createMock({ body })).id;
      await api.mocks.updateMock({ params: { id: rule.id }, body: { ...body, enabled: rule.enabled } });
      return rule.id;
    },
  });
  const set = (change: Partial<MockDraft>): void => {
    stored.set({ form: { ...draft, ...change }, condition });
    save.reset();
  };
  const form = (
    <div className={styles["panel"]}>
      <RuleForm
        key={stored.revision}
        draft={draft}
        set={set}
        refused={refused.fields}
        condition={condition}
        onCondition={(next) => {
          stored.set({ form: draft, condition: next });
          save.reset();
        }}
      />
      <Refused>{refused.general}</Refused>
    </div>
  );
  return (
    <RuleEditor
      noun="mock"
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
      {rule === null ? (
        <ScrollBody label="The rule">{form}</ScrollBody>
      ) : (
        <Tabs<MockPart>
          label="Parts of the mock"
          value={part}
          onChange={onPart}
          tabs={[
            { value: "rule", label: "Rule", content: () => form },
            { value: "try", label: "Try", content: () => <TryTab rule={rule} /> },
            {
              value: "versions",
              label: "Versions",
              count: rule.version,
              content: () => <VersionsTab rule={rule} />,
            },
            { value: "hits", label: "Hits", count: rule.hit_count, content: () => <HitsTab id={rule.id} /> },
          ]}
        />
      )}
    </RuleEditor>
  );
}

const EXPIRES = [
  { value: "never", label: "Never" },
  { value: "hits", label: "After so many answers" },
  { value: "time", label: "After so many seconds" },
  { value: "date", label: "At a time" },
] as const;

function RuleForm({
  draft,
  set,
  refused,
  condition,
  onCondition,
}: {
  readonly draft: MockDraft;
  readonly set: (change: Partial<MockDraft>) => void;
  readonly refused: Readonly<Record<string, string>>;
  readonly condition: Condition | null;
  readonly onCondition: (condition: Condition | null) => void;
}) {
  const collections = useQuery(mockCollectionsQuery);
  return (
    <>
      <NameField value={draft.name} error={refused["name"]} onChange={(name) => set({ name })} />
      <ConditionBuilder
        initial={condition ?? draft.condition}
        phase="request"
        error={refused["condition"]}
        onChange={onCondition}
      />
      <MatchPreview condition={condition} direction="request" />
      <ConfigEditor draft={draft.config} onChange={(config) => set({ config })} />
      <div className={styles["two"]}>
        <Field label="Collection">
          <Select
            value={draft.collectionId ?? ""}
            options={[
              { value: "", label: "None" },
              ...(collections.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
            onChange={(id) => set({ collectionId: id === "" ? null : id })}
          />
        </Field>
        <OrderField
          hint="The lowest that matches answers"
          value={draft.priority}
          error={refused["priority"]}
          onChange={(priority) => set({ priority })}
        />
        <Field label="Labels" hint="With commas between">
          <TextInput value={draft.tags} onChange={(event) => set({ tags: event.target.value })} />
        </Field>
        <Field label="Expires" error={refused["expiration"]}>
          <Select<MockDraft["expires"]>
            value={draft.expires}
            options={EXPIRES}
            onChange={(expires) => set({ expires, expiresValue: "" })}
          />
        </Field>
        {draft.expires !== "never" && (
          <Field label={draft.expires === "hits" ? "Answers" : draft.expires === "time" ? "Seconds" : "Date and time"}>
            <TextInput
              mono
              placeholder={draft.expires === "date" ? "2027-01-31T18:00" : "10"}
              value={draft.expiresValue}
              onChange={(event) => set({ expiresValue: event.target.value })}
            />
          </Field>
        )}
      </div>
      <Field label="Description">
        <TextInput
          maxLength={4096}
          value={draft.description}
          onChange={(event) => set({ description: event.target.value })}
        />
      </Field>
      <Field
        label="JSON Schema of the bodies"
        hint="Bodies that do not fit are refused when the mock is saved"
        error={refused["response_schema"]}
      >
        <TextArea
          mono
          rows={2}
          spellCheck={false}
          value={draft.schema}
          onChange={(event) => set({ schema: event.target.value })}
        />
      </Field>
    </>
  );
}
