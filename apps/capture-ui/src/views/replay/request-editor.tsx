import { skipToken, useMutation, useQuery } from "@tanstack/react-query";
import { Play, Save } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import type { ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { BodyEditor, HeadersEditor } from "../../rules/message-editor.tsx";
import { ChangedElsewhere, Failed, useEditorFocus } from "../../rules/rule-editor.tsx";
import { type StoredDraft, useStoredDraft } from "../../rules/stored-draft.ts";
import { Link } from "../../shell/link.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { formatBytes, formatDateTime, formatDuration } from "../../ui/format.ts";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Tag } from "../../ui/tag.tsx";
import { messageLines } from "../detail/decoded-message.ts";
import { BatchTab } from "./batch-tab.tsx";
import styles from "./replay.module.css";
import { savedTitle } from "./saved-list.tsx";
import {
  aboutOf,
  type RequestDraft,
  newRequest,
  draftOfSaved,
  requestProblem,
  requestOf,
  isSameRequest,
  modificationsOf,
  variablesIn,
} from "./request-draft.ts";

/** The first save of a request remounts the editor, which must not lose its result and variables. */
const outcomeKey = (id: string) => ["replay-outcome", id] as const;
const variablesKey = (id: string) => ["replay-variables", id] as const;
const refresh = () => queryClient.invalidateQueries({ queryKey: ["replay"] });

type Part = "request" | "batch" | "history";

/** Edits a request, sends it, and shows the result. */
export function RequestEditor({
  saved,
  keptAs,
  isGone,
  onSaved,
}: {
  /** Null for an unsaved request. */
  readonly saved: SavedRequest | null;
  /** Name under which an unsaved draft is kept. */
  readonly keptAs: string;
  /** Deleted by another client during editing. */
  readonly isGone: boolean;
  readonly onSaved: (id: string) => void;
}) {
  const start = useMemo(() => (saved === null ? newRequest() : draftOfSaved(saved)), [saved]);
  const stored = useStoredDraft(keptAs, start);
  const { before, draft } = stored;
  const editor = useEditorFocus<HTMLDivElement>(saved === null);
  const [variables, setVariables] = useState<Variables>(() => enteredVariables(saved?.id ?? ""));
  const [follow, setFollow] = useState(false);
  const [part, setPart] = useState<Part>("request");
  const isChanged = saved === null || !isSameRequest(before, draft);
  const problem = requestProblem(draft);
  const { save, send } = useRequestCalls({ saved, stored, variables, follow });
  // Sending may save, too.
  const isBusy = save.isPending || send.isPending;
  const outcome = useQuery<ReplayResult>({
    queryKey: outcomeKey(saved?.id ?? ""),
    queryFn: skipToken,
    staleTime: Infinity,
  }).data;
  const form = (
    <div ref={editor} className={styles["panel"]}>
      <RequestForm draft={draft} onChange={stored.set} />
      <VariableFields draft={draft} values={variables} onChange={setVariables} />
      <Switch label="Follow redirects" checked={follow} onChange={setFollow} />
      <Failed error={save.error ?? send.error} />
      {outcome !== undefined && <Outcome key={outcome.id} result={outcome} />}
    </div>
  );
  return (
    <>
      <div className={styles["head"]}>
        <h2>{saved === null ? "New request" : savedTitle(saved)}</h2>
        <span className={styles["grow"]} />
        {problem !== null && draft.url !== "" && <span className={styles["problem"]}>{problem}</span>}
        {stored.isChanged && (
          <Button variant="ghost" onClick={stored.discard}>
            Discard
          </Button>
        )}
        <Button
          icon={<Save size={14} />}
          disabled={problem !== null || isBusy}
          onClick={() => save.mutate(undefined, { onSuccess: onSaved })}
        >
          Save
        </Button>
        <Button
          variant="primary"
          icon={<Play size={14} />}
          disabled={problem !== null || isBusy}
          onClick={() =>
            send.mutate(undefined, {
              // Only called while the editor is mounted, so it does not navigate away from another screen.
              onSuccess: ({ savedId }) => {
                if (saved === null) onSaved(savedId);
              },
            })
          }
        >
          {saved !== null && isChanged ? "Send edited" : "Send"}
        </Button>
      </div>
      {stored.isOutdated && !isBusy && <ChangedElsewhere noun="request" isGone={isGone} stored={stored} />}
      <Tabs<Part>
        label="Request views"
        value={part}
        onChange={setPart}
        tabs={[
          { value: "request", label: "Request", content: () => form },
          ...(saved === null
            ? []
            : [
                {
                  value: "batch" as const,
                  label: "Batch",
                  content: () => <BatchTab id={saved.id} variables={variables} />,
                },
                {
                  value: "history" as const,
                  label: "History",
                  content: () => <HistoryTab saved={saved} />,
                },
              ]),
        ]}
      />
    </>
  );
}

function VariableFields({
  draft,
  values,
  onChange,
}: {
  readonly draft: RequestDraft;
  readonly values: Variables;
  readonly onChange: (values: Variables) => void;
}) {
  const names = variablesIn(draft);
  if (names.length === 0) return null;
  return (
    <div className={styles["fields"]} role="group" aria-label="Variables">
      {names.map((name) => (
        <Field key={name} label={`{{${name}}}`}>
          <TextInput
            mono
            value={values[name] ?? ""}
            onChange={(event) => onChange({ ...values, [name]: event.target.value })}
          />
        </Field>
      ))}
    </div>
  );
}

function RequestForm({
  draft,
  onChange,
}: {
  readonly draft: RequestDraft;
  readonly onChange: (draft: RequestDraft) => void;
}) {
  return (
    <>
      <div className={styles["fields"]}>
        <Field label="Name">
          <TextInput
            maxLength={255}
            placeholder="Optional. Defaults to the URL."
            value={draft.name}
            onChange={(event) => onChange({ ...draft, name: event.target.value })}
          />
        </Field>
        <Field label="Collection">
          <TextInput
            maxLength={255}
            placeholder="None"
            value={draft.collection}
            onChange={(event) => onChange({ ...draft, collection: event.target.value })}
          />
        </Field>
      </div>
      <div className={styles["line"]}>
        <Field label="Method">
          <TextInput
            mono
            maxLength={64}
            value={draft.method}
            onChange={(event) => onChange({ ...draft, method: event.target.value })}
          />
        </Field>
        <Field label="URL">
          <TextInput
            mono
            placeholder="https://api.example.com/orders/{{id}}"
            value={draft.url}
            onChange={(event) => onChange({ ...draft, url: event.target.value })}
          />
        </Field>
      </div>
      <HeadersEditor label="Headers" drafts={draft.headers} onChange={(headers) => onChange({ ...draft, headers })} />
      <BodyEditor draft={draft.body} onChange={(body) => onChange({ ...draft, body })} />
    </>
  );
}

async function clearHistory(): Promise<void> {
  const sure = await confirmAction({
    title: "Clear history?",
    text: "Clears the history of all saved requests and all batch results. Captured requests are kept.",
    action: "Clear",
    danger: true,
  });
  if (!sure) return;
  await attempt("Could not clear the history", () => api.replay.clearReplayHistory({}));
  await queryClient.invalidateQueries({ queryKey: ["replay"] });
}

function ReplayLinks({ result, original }: { readonly result: ReplayResult; readonly original: string | undefined }) {
  return (
    <>
      {result.entry_id !== null && <Link href={`/traffic?id=${result.entry_id}`}>Traffic</Link>}{" "}
      {original !== undefined && (
        <Link href={`/replay?left=${original}&right=${result.id}`}>
          {result.source_entry_id === null ? "Compare with previous" : "Compare with original"}
        </Link>
      )}
    </>
  );
}

/** All replays of a saved request, newest first. */
function HistoryTab({ saved }: { readonly saved: SavedRequest }) {
  const history = useQuery({
    queryKey: ["replay", "history", saved.id],
    queryFn: ({ signal }) =>
      api.replay.listReplayHistory({ query: { saved_request_id: saved.id, limit: 200 }, signal }),
  });
  if (history.error !== null) return <ErrorState title="Could not load the history" error={history.error} />;
  if (history.data?.length === 0) return <EmptyState title="Not sent yet" />;
  const list = history.data ?? [];
  return (
    <div className={styles["panel"]}>
      <DataTable
        label="Replays"
        className={styles["table"]}
        titles={["Time", "Request", "Outcome", "Duration", "Actions"]}
        rows={list.map((result, index) => [
          formatDateTime(Date.parse(result.executed_at)),
          <span key="request" className={styles["requestUrl"]} title={result.request.url.slice(0, 2000)}>
            {result.request.method} {result.request.url}
          </span>,
          result.response === null ? (
            <Tag key="outcome" tone="error">
              {result.error_code ?? "failed"}
            </Tag>
          ) : (
            <Tag key="outcome" tone={result.response.status_code >= 400 ? "warning" : "ok"}>
              {result.response.status_code}
            </Tag>
          ),
          formatDuration(result.duration_ms),
          <ReplayLinks key="links" result={result} original={result.source_entry_id ?? list[index + 1]?.id} />,
        ])}
      />
      <div>
        <Button variant="danger" onClick={() => void clearHistory()}>
          Clear history
        </Button>
      </div>
    </div>
  );
}

function Outcome({ result }: { readonly result: ReplayResult }) {
  const { response } = result;
  const lines = useQuery({
    queryKey: ["replay", "outcome", result.id],
    queryFn: () => (response === null ? null : messageLines(response)),
    staleTime: Infinity,
  });
  return (
    <section className={styles["outcome"]} aria-label="Response">
      <div className={styles["outcomeHead"]} role="status">
        {response === null ? (
          <Tag key="outcome" tone="error">
            {result.error_code ?? "failed"}
          </Tag>
        ) : (
          <Tag tone={response.status_code >= 400 ? "warning" : "ok"}>{response.status_code}</Tag>
        )}
        <span>{response === null ? result.error : (response.status_message ?? "")}</span>
        <span className={styles["quiet"]}>{formatDuration(result.duration_ms)}</span>
        {response !== null && <span className={styles["quiet"]}>{formatBytes(response.body_size)}</span>}
        {result.redirects.length > 0 && (
          <span className={styles["quiet"]}>
            after {result.redirects.length === 1 ? "1 redirect" : `${result.redirects.length} redirects`}
          </span>
        )}
        <span className={styles["grow"]} />
        {result.entry_id !== null && <Link href={`/traffic?id=${result.entry_id}`}>Show in Traffic</Link>}
        {result.source_entry_id !== null && (
          <Link href={`/replay?left=${result.source_entry_id}&right=${result.id}`}>Compare with original</Link>
        )}
      </div>
      {lines.data != null && <pre>{[...lines.data.head, "", ...lines.data.body.slice(0, 2000)].join("\n")}</pre>}
      {lines.data?.note != null && <p className={styles["quiet"]}>{lines.data.note}</p>}
    </section>
  );
}

type Variables = Readonly<Record<string, string>>;

interface Sending {
  /** Null if the first save succeeded but sending failed. */
  readonly result: ReplayResult | null;
  readonly savedId: string;
  /** Whether the request was saved before sending. */
  readonly isStored: boolean;
}

/** Variables entered before a request's first save. */
function enteredVariables(id: string): Variables {
  return queryClient.getQueryData<Variables>(variablesKey(id)) ?? {};
}

/** Mutations that save a request, and send it, which may save it first. */
function useRequestCalls({
  saved,
  stored,
  variables,
  follow,
}: {
  /** Null for an unsaved request. */
  readonly saved: SavedRequest | null;
  readonly stored: StoredDraft<RequestDraft>;
  readonly variables: Variables;
  readonly follow: boolean;
}) {
  const { before, draft } = stored;
  const sent = useRef(draft);
  const store = async (): Promise<string> => {
    sent.current = draft;
    const body = { request: requestOf(draft), ...aboutOf(draft) };
    if (saved === null) return (await api.replay.saveRequest({ body })).id;
    await api.replay.updateSavedRequest({ params: { id: saved.id }, body: { ...body, tags: saved.tags } });
    return saved.id;
  };
  const save = useMutation({
    mutationFn: store,
    onSuccess: async (id) => {
      if (saved === null) queryClient.setQueryData(variablesKey(id), variables);
      await refresh();
      stored.settle(sent.current);
      toast({ tone: "success", title: "Request saved", durationMs: 2500 });
    },
  });
  const send = useMutation({
    mutationFn: async (): Promise<Sending> => {
      const modified = saved === null ? null : modificationsOf(before, draft);
      // A draft that modifications cannot express is saved before sending.
      const isStored = saved === null || modified === null;
      const id = isStored ? await store() : saved.id;
      const execute = async () =>
        await api.replay.executeReplay({
          params: { id },
          body: { modifications: { ...modified, follow_redirects: follow }, variables },
        });
      if (saved !== null) return { result: await execute(), savedId: id, isStored };
      // Saved from here on even if sending fails: a retry must not save it twice.
      stored.release();
      const sending: { result: ReplayResult | null } = { result: null };
      await attempt("Request saved, but not sent", async () => {
        sending.result = await execute();
      });
      return { ...sending, savedId: id, isStored };
    },
    onSuccess: async ({ result, savedId, isStored }) => {
      if (result !== null) queryClient.setQueryData(outcomeKey(savedId), result);
      if (saved === null) queryClient.setQueryData(variablesKey(savedId), variables);
      await refresh();
      if (isStored) stored.settle(sent.current);
    },
  });
  return { save, send };
}
