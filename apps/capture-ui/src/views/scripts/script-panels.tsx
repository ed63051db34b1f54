import { HOOK_FUNCTIONS, SCRIPT_HOOKS, type ScriptHook, type ScriptTestResult } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { BodyEditor, HeadersEditor } from "../../rules/message-editor.tsx";
import { Failed, Refused } from "../../rules/rule-editor.tsx";
import { EntryPicker, NameField, OrderField } from "../../rules/rule-fields.tsx";
import { Link } from "../../shell/link.tsx";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { Field, Select, TextArea, TextInput } from "../../ui/field.tsx";
import { formatCount, formatDateTime, formatDuration, formatTimeOfDay } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { attempt } from "../../ui/toast.tsx";
import { type FilterDraft, HOOK_LABELS, type ScriptDraft } from "./script-draft.ts";
import { ExecutionList, Outcome } from "./script-executions.tsx";
import { newTrial, partsOf, testedLines, type TrialDraft, trialOf } from "./script-trial.ts";
import styles from "./scripts.module.css";

const HOOK_OPTIONS = SCRIPT_HOOKS.map((value) => ({ value, label: `${HOOK_LABELS[value]}: ${HOOK_FUNCTIONS[value]}` }));

/** State of the test, kept while other tabs are shown. */
export function useTrial(entryId: string | null) {
  const [draft, setDraft] = useState<TrialDraft>(() => ({
    ...newTrial(),
    ...(entryId === null ? {} : { input: "entry" as const, entryId }),
  }));
  const run = useMutation({ mutationFn: api.scripts.testScript });
  return { draft, set: (change: Partial<TrialDraft>) => setDraft({ ...draft, ...change }), run };
}

/** Runs the edited source on a sample or a captured entry; nothing is sent or stored. */
export function TestPanel({
  trial: { draft, set, run },
  source,
  declared,
}: {
  readonly trial: ReturnType<typeof useTrial>;
  readonly source: string;
  /** The hooks whose functions the source declares. */
  readonly declared: readonly ScriptHook[];
}) {
  const hook = draft.hook ?? declared[0] ?? "on_request";
  const parts = partsOf(hook);
  const built = trialOf(draft, source, hook);
  const start = (): void => {
    if (built.ok) run.mutate({ body: built.test });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    // Enter would save the script.
    event.preventDefault();
    start();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- Enter in its fields runs the test
    <div className={styles["panel"]} onKeyDown={onKeyDown}>
      <div className={styles["testLine"]}>
        <Field label="Hook" className={styles["grow"]}>
          <Select value={hook} options={HOOK_OPTIONS} onChange={(next) => set({ hook: next })} />
        </Field>
        <Button size="large" icon={<Play size={13} />} disabled={!built.ok || run.isPending} onClick={start}>
          Test
        </Button>
      </div>
      {parts.request && (
        <div>
          <Segmented
            label="Test input"
            value={draft.input}
            options={[
              { value: "sample", label: "Sample" },
              { value: "entry", label: "Captured request" },
            ]}
            onChange={(input) => set({ input })}
          />
        </div>
      )}
      {parts.request && draft.input === "entry" && (
        <EntryPicker value={draft.entryId} onChange={(entryId) => set({ entryId })} />
      )}
      {parts.request && draft.input === "sample" && <SampleFields draft={draft} set={set} parts={parts} />}
      {parts.message !== null && <MessageFields draft={draft} set={set} kind={parts.message} />}
      <p className={styles["quiet"]}>
        {built.ok ? "Nothing is sent or stored, and the script need not be saved." : built.message}
      </p>
      <Failed error={run.error} />
      {run.data !== undefined && (
        <TestOutcome result={run.data} payload={run.variables?.body.message?.payload ?? null} />
      )}
    </div>
  );
}

type SetTrial = (change: Partial<TrialDraft>) => void;

function SampleFields({
  draft,
  set,
  parts,
}: {
  readonly draft: TrialDraft;
  readonly set: SetTrial;
  readonly parts: ReturnType<typeof partsOf>;
}) {
  return (
    <>
      <div className={styles["sampleHead"]}>
        <Field label="Method" className={styles["short"]}>
          <TextInput
            mono
            maxLength={32}
            value={draft.method}
            onChange={(event) => set({ method: event.target.value })}
          />
        </Field>
        <Field label="URL" className={styles["grow"]}>
          <TextInput mono maxLength={8192} value={draft.url} onChange={(event) => set({ url: event.target.value })} />
        </Field>
      </div>
      <HeadersEditor
        label="Request headers"
        drafts={draft.requestHeaders}
        onChange={(requestHeaders) => set({ requestHeaders })}
      />
      {parts.message === null && (
        <BodyEditor label="Request body" draft={draft.requestBody} onChange={(requestBody) => set({ requestBody })} />
      )}
      {parts.response && (
        <>
          <Field label="Response status" className={styles["short"]}>
            <TextInput
              mono
              inputMode="numeric"
              maxLength={3}
              value={draft.status}
              onChange={(event) => set({ status: event.target.value })}
            />
          </Field>
          <HeadersEditor
            label="Response headers"
            drafts={draft.responseHeaders}
            onChange={(responseHeaders) => set({ responseHeaders })}
          />
          <BodyEditor
            label="Response body"
            draft={draft.responseBody}
            onChange={(responseBody) => set({ responseBody })}
          />
        </>
      )}
    </>
  );
}

function MessageFields({
  draft,
  set,
  kind,
}: {
  readonly draft: TrialDraft;
  readonly set: SetTrial;
  readonly kind: "websocket" | "grpc";
}) {
  return (
    <>
      <div>
        <Segmented
          label="Direction of the message"
          value={draft.direction}
          options={[
            { value: "send", label: "Client to server" },
            { value: "receive", label: "Server to client" },
          ]}
          onChange={(direction) => set({ direction })}
        />
      </div>
      {kind === "grpc" && (
        <div className={styles["sampleHead"]}>
          <Field label="Service" className={styles["grow"]}>
            <TextInput
              mono
              maxLength={255}
              placeholder="package.Service"
              value={draft.service}
              onChange={(event) => set({ service: event.target.value })}
            />
          </Field>
          <Field label="Method" className={styles["grow"]}>
            <TextInput mono maxLength={255} value={draft.rpc} onChange={(event) => set({ rpc: event.target.value })} />
          </Field>
        </div>
      )}
      <BodyEditor label="Message" draft={draft.payload} onChange={(payload) => set({ payload })} />
    </>
  );
}

function outcomeText(result: ScriptTestResult): string {
  if (result.error !== null) return "The script failed; the message would go on unchanged.";
  if (result.response !== null) return "The script responds itself; the server is not contacted.";
  if (!result.continue_) return "The script stops the message.";
  return result.modified ? "The script changes the message." : "The script changes nothing.";
}

function TestOutcome({ result, payload }: { readonly result: ScriptTestResult; readonly payload: string | null }) {
  const { request, original_response: response } = result;
  const section = useRef<HTMLElement>(null);
  // The fields above may fill the panel.
  useEffect(() => {
    section.current?.scrollIntoView({ block: "nearest" });
  }, [result]);
  return (
    <section ref={section} className={styles["outcome"]} aria-label="Test result">
      <div className={styles["executionHead"]}>
        <p role="status">{outcomeText(result)}</p>
        {result.error !== null && <Tag tone="error">error</Tag>}
        <span className={styles["grow"]} />
        <span className={styles["quiet"]}>{formatDuration(result.duration_ms)}</span>
      </div>
      <Outcome execution={result} />
      {result.modified_request !== null && (
        <>
          <h3>Request</h3>
          <DiffView
            label="Changes to the request"
            left={testedLines(request)}
            right={testedLines(result.modified_request)}
          />
        </>
      )}
      {result.modified_response !== null && (
        <>
          <h3>Response</h3>
          <DiffView
            label="Changes to the response"
            left={testedLines(response)}
            right={testedLines(result.modified_response)}
          />
        </>
      )}
      {result.modified_payload !== null && (
        <>
          <h3>Message</h3>
          <DiffView
            label="Changes to the message"
            left={(payload ?? "").split("\n")}
            right={result.modified_payload.split("\n")}
          />
        </>
      )}
      {result.response !== null && (
        <>
          <h3>Response of the script</h3>
          <DiffView label="Response of the script" left={[]} right={testedLines(result.response)} />
        </>
      )}
    </section>
  );
}

const SHOWN_RUNS = 200;

/** Runs of the stored script, newest first. */
export function HistoryPanel({ id, name }: { readonly id: string; readonly name: string }) {
  const runs = useQuery({
    queryKey: ["scripts", "history", id],
    queryFn: ({ signal }) => api.scripts.getScriptHistory({ params: { id }, query: { limit: SHOWN_RUNS }, signal }),
    refetchInterval: 5000,
  });
  const clear = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Clear the history?",
      text: `Removes all runs of ${name} from the history. The script and captured requests are kept.`,
      action: "Clear",
      danger: true,
    });
    if (!sure) return;
    await attempt("Could not clear the history", () => api.scripts.clearScriptHistory({ params: { id } }));
    await queryClient.invalidateQueries({ queryKey: ["scripts"] });
  };
  if (runs.error !== null) return <ErrorState title="Could not load the history" error={runs.error} />;
  if (runs.isPending) return <EmptyState icon={<Spinner />} title="" />;
  if (runs.data.length === 0) {
    return (
      <EmptyState title="No runs yet">Each call of the script is listed here, with errors and console.</EmptyState>
    );
  }
  return (
    <div className={styles["panel"]}>
      <div className={styles["executionHead"]}>
        <span className={styles["quiet"]}>
          {runs.data.length === SHOWN_RUNS ? `The newest ${formatCount(SHOWN_RUNS)} runs` : "Newest first"}
        </span>
        <span className={styles["grow"]} />
        <Button variant="danger" onClick={() => void clear()}>
          Clear history
        </Button>
      </div>
      <ExecutionList
        label="Runs"
        executions={runs.data}
        about={({ timestamp, traffic_entry_id: entry }) => (
          <>
            <time dateTime={timestamp} title={formatDateTime(Date.parse(timestamp))}>
              {formatTimeOfDay(Date.parse(timestamp))}
            </time>
            {entry !== undefined && <Link href={`/traffic?id=${encodeURIComponent(entry)}`}>Request</Link>}
          </>
        )}
      />
    </div>
  );
}

const ON_ERROR = [
  { value: "stop_chain", label: "Skip later scripts" },
  { value: "continue", label: "Run later scripts" },
] as const;

const FILTER_FIELDS: readonly {
  readonly name: keyof FilterDraft;
  readonly label: string;
  readonly error: string;
  readonly example: string;
  readonly maxLength: number;
}[] = [
  { name: "method", label: "Method", error: "match_filter.method", example: "GET", maxLength: 32 },
  { name: "host", label: "Host", error: "match_filter.host_pattern", example: "*.example.com", maxLength: 500 },
  { name: "path", label: "Path and query", error: "match_filter.path_pattern", example: "/api/*", maxLength: 500 },
  { name: "url", label: "URL", error: "match_filter.url_pattern", example: "https://*/orders*", maxLength: 500 },
];

/** Fields of the form to which refusals of the service are assigned. */
export const SCRIPT_FIELDS = [
  "name",
  "description",
  "source",
  "hooks",
  "priority",
  "on_error",
  ...FILTER_FIELDS.map(({ error }) => error),
];

/** Name, hooks, filter and order of the script. */
export function SettingsPanel({
  draft,
  set,
  refused,
  hooks,
  declared,
}: {
  readonly draft: ScriptDraft;
  readonly set: (change: Partial<ScriptDraft>) => void;
  readonly refused: Readonly<Record<string, string>>;
  /** The hooks that will call the script. */
  readonly hooks: readonly ScriptHook[];
  /** The hooks whose functions the source declares; null while unknown. */
  readonly declared: readonly ScriptHook[] | null;
}) {
  const toggle = (hook: ScriptHook, isOn: boolean): void =>
    set({ hooks: SCRIPT_HOOKS.filter((each) => (each === hook ? isOn : hooks.includes(each))) });
  return (
    <div className={styles["panel"]}>
      <NameField value={draft.name} error={refused["name"]} onChange={(name) => set({ name })} />
      <Field label="Description" error={refused["description"]}>
        <TextArea
          rows={2}
          maxLength={10_000}
          value={draft.description}
          onChange={(event) => set({ description: event.target.value })}
        />
      </Field>
      <fieldset className={styles["hooks"]}>
        <legend>Hooks</legend>
        {SCRIPT_HOOKS.map((hook) => {
          const isOn = hooks.includes(hook);
          const isDeclared = declared?.includes(hook);
          return (
            <label key={hook}>
              <input type="checkbox" checked={isOn} onChange={(event) => toggle(hook, event.target.checked)} />
              <span>
                {HOOK_LABELS[hook]} <code>{HOOK_FUNCTIONS[hook]}</code>
              </span>
              {isOn && isDeclared === false && <Tag tone="warning">no such function</Tag>}
              {!isOn && isDeclared === true && <Tag tone="warning">declared, but off</Tag>}
            </label>
          );
        })}
        <Refused>{refused["hooks"]}</Refused>
      </fieldset>
      <fieldset className={styles["filter"]}>
        <legend>Only for</legend>
        {FILTER_FIELDS.map(({ name, label, error, example, maxLength }) => (
          <Field key={name} label={label} error={refused[error]}>
            <TextInput
              mono
              maxLength={maxLength}
              placeholder={example}
              value={draft.filter[name]}
              onChange={(event) => set({ filter: { ...draft.filter, [name]: event.target.value } })}
            />
          </Field>
        ))}
        <p className={styles["quiet"]}>
          * matches any characters, ? one. All given fields must match; without any, the script sees all traffic.
        </p>
      </fieldset>
      <div className={styles["option"]}>
        <span className={styles["optionLabel"]}>After an error</span>
        <Segmented
          label="After an error"
          value={draft.onError}
          options={ON_ERROR}
          onChange={(onError) => set({ onError })}
        />
        <span className={styles["quiet"]}>The message goes on as it was before the failed script.</span>
      </div>
      <OrderField
        hint="Lowest number first"
        value={draft.priority}
        error={refused["priority"]}
        onChange={(priority) => set({ priority })}
      />
    </div>
  );
}
