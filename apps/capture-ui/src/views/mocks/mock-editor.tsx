import type { Condition, MockRule, NewMock } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Play, Plus } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api } from "../../api.ts";
import { mockCollectionsQuery, queryClient } from "../../queries.ts";
import { ConditionBuilder, ConditionLines } from "../../rules/condition-builder.tsx";
import { MatchPreview } from "../../rules/match-preview.tsx";
import { BodyEditor, HeadersEditor } from "../../rules/message-editor.tsx";
import { jsonLines } from "../../rules/message-text.ts";
import { Failed, Refused, type RuleDraft, RuleEditor, ScrollBody, useRuleForm } from "../../rules/rule-editor.tsx";
import { EntryPicker, NameField, OrderButtons, OrderField } from "../../rules/rule-fields.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Button } from "../../ui/button.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { HitsTab } from "./hits-tab.tsx";
import { type MockDraft, mockOf } from "./mock-draft.ts";
import styles from "./mocks.module.css";
import {
  type ConfigDraft,
  type ConfigKind,
  newResponse,
  RESPONSE_VOCABULARY,
  type ResponseDraft,
} from "./response-draft.ts";

const FIELDS = ["name", "condition", "response_schema", "expiration", "priority"] as const;

export type MockPart = "rule" | "try" | "versions" | "hits";

/** Creates or edits a mock, tests it, and shows its versions and hits. */
export function MockEditor({
  name,
  start,
  rule,
  part,
  onPart,
  onClose,
  onSaved,
}: {
  readonly name: string;
  readonly start: RuleDraft<MockDraft>;
  /** The stored rule; null for a new one. */
  readonly rule: MockRule | null;
  readonly part: MockPart;
  readonly onPart: (part: MockPart) => void;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const { draft, condition, revision, refused, set, setCondition, editor } = useRuleForm({
    name,
    start,
    topic: "mocks",
    fields: FIELDS,
    build: mockOf,
    onSaved,
    save: async (body: NewMock) => {
      if (rule === null) return (await api.mocks.createMock({ body })).id;
      await api.mocks.updateMock({ params: { id: rule.id }, body: { ...body, enabled: rule.enabled } });
      return rule.id;
    },
  });
  const form = (
    <div className={styles["panel"]}>
      <RuleForm
        key={revision}
        draft={draft}
        set={set}
        refused={refused.fields}
        condition={condition}
        onCondition={setCondition}
      />
      <Refused>{refused.general}</Refused>
    </div>
  );
  return (
    <RuleEditor noun="mock" name={rule?.name ?? null} {...editor} onClose={onClose}>
      {rule === null ? (
        <ScrollBody label="Rule">{form}</ScrollBody>
      ) : (
        <Tabs<MockPart>
          label="Mock views"
          value={part}
          onChange={onPart}
          tabs={[
            { value: "rule", label: "Rule", content: () => form },
            { value: "try", label: "Test", content: () => <TryTab rule={rule} /> },
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
  { value: "hits", label: "After a number of responses" },
  { value: "time", label: "After a number of seconds" },
  { value: "date", label: "At a date and time" },
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
          hint="If several rules match, the lowest number wins."
          value={draft.priority}
          error={refused["priority"]}
          onChange={(priority) => set({ priority })}
        />
        <Field label="Tags" hint="Separate with commas">
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
          <Field
            label={draft.expires === "hits" ? "Responses" : draft.expires === "time" ? "Seconds" : "Date and time"}
          >
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
        label="JSON Schema for bodies"
        hint="Bodies that do not match the schema are rejected when the mock is saved"
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

/** Previous versions of the mock, with comparison and restore. */
function VersionsTab({ rule }: { readonly rule: MockRule }) {
  const versions = useQuery({
    queryKey: ["mocks", "versions", rule.id],
    queryFn: ({ signal }) => api.mocks.listMockVersions({ params: { id: rule.id }, signal }),
  });
  const [shown, setShown] = useState<number | null>(null);
  const goBack = async (version: number): Promise<void> => {
    const done = await attempt("Could not restore the version", () =>
      api.mocks.rollbackMock({ params: { id: rule.id }, body: { version } }),
    );
    if (done) toast({ tone: "success", title: `Version ${version} restored` });
    await queryClient.invalidateQueries({ queryKey: ["mocks"] });
  };
  if (versions.error !== null) return <ErrorState title="Could not load the versions" error={versions.error} />;
  if (versions.isPending) return <EmptyState icon={<Spinner />} title="" />;
  if (versions.data.length === 0) {
    return (
      <EmptyState title="Only one version">
        Each change to the condition or responses keeps the previous version.
      </EmptyState>
    );
  }
  const now = jsonLines({ condition: rule.condition, response_config: rule.response_config });
  return (
    <div className={styles["panel"]}>
      {versions.data.map((version) => (
        <div key={version.version}>
          <div className={styles["versionLine"]}>
            <b>Version {version.version}</b>
            <span className={shared["quiet"]}>until {formatDateTime(Date.parse(version.saved_at))}</span>
            {version.comment !== null && <span>{version.comment}</span>}
            <span className={styles["grow"]} />
            <Button
              pressed={shown === version.version}
              onClick={() => setShown(shown === version.version ? null : version.version)}
            >
              Compare with current
            </Button>
            <Button onClick={() => void goBack(version.version)}>Restore</Button>
          </div>
          {shown === version.version && (
            <DiffView
              label={`Version ${version.version} compared with current`}
              left={jsonLines({ condition: version.condition, response_config: version.response_config })}
              right={now}
            />
          )}
        </div>
      ))}
    </div>
  );
}

/** Tests which rule would respond to a request, and why. Nothing is sent. */
function TryTab({ rule }: { readonly rule: MockRule }) {
  const [by, setBy] = useState<"entry" | "url">("entry");
  const [entryId, setEntryId] = useState<string | null>(null);
  const [method, setMethod] = useState("GET");
  const [url, setUrl] = useState("");
  const run = useMutation({
    mutationFn: async () => {
      const body = by === "entry" ? { entry_id: entryId ?? "" } : { request: { method, url } };
      return {
        test: await api.mocks.testMock({ params: { id: rule.id }, body }),
        preview: await api.mocks.previewMock({ body }),
      };
    },
  });
  const { data } = run;
  return (
    <div className={styles["panel"]}>
      <Segmented
        label="Test input"
        value={by}
        options={[
          { value: "entry", label: "Captured request" },
          { value: "url", label: "Custom request" },
        ]}
        onChange={setBy}
      />
      {by === "entry" ? (
        <EntryPicker value={entryId} onChange={setEntryId} />
      ) : (
        <div className={styles["responseHead"]}>
          <Field label="Method" className={styles["short"]}>
            <TextInput mono maxLength={64} value={method} onChange={(event) => setMethod(event.target.value)} />
          </Field>
          <Field label="URL" className={styles["grow"]}>
            <TextInput
              mono
              placeholder="https://api.example.com/orders"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          </Field>
        </div>
      )}
      <div>
        <Button
          icon={<Play size={13} />}
          disabled={run.isPending || (by === "entry" ? entryId === null : !URL.canParse(url))}
          onClick={() => run.mutate()}
        >
          Test
        </Button>
      </div>
      <Failed error={run.error} />
      {data !== undefined && (
        <>
          <p role="status">
            {data.test.matches ? "This mock matches." : "This mock does not match."}{" "}
            {data.preview.matched
              ? data.preview.rule_id === rule.id
                ? "Response:"
                : `${data.preview.rule_name ?? "Another mock"} responds:`
              : (data.preview.message ?? "No mock matches.")}
          </p>
          {data.preview.response !== undefined && (
            <pre className={styles["preview"]}>{jsonLines(data.preview.response).join("\n")}</pre>
          )}
          <ul className={shared["changes"]} aria-label="Match explanation">
            {data.test.explanation.map((part, index) => (
              <li key={`${index}`}>{part}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

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

function ConfigEditor({
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
