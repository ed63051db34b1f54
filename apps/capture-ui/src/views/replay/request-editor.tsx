import type { ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { skipToken, useMutation, useQuery } from "@tanstack/react-query";
import { Play, Save } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { BodyEditor } from "../../rules/body-editor.tsx";
import { HeadersEditor } from "../../rules/headers-editor.tsx";
import { Failed } from "../../rules/refused.tsx";
import { Button } from "../../ui/button.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { toast } from "../../ui/toast.tsx";
import { BatchTab } from "./batch-tab.tsx";
import { HistoryTab } from "./history-tab.tsx";
import { Outcome } from "./outcome.tsx";
import styles from "./replay.module.css";
import {
  aboutOf,
  draftOfSaved,
  isSameRequest,
  modificationsOf,
  newRequest,
  requestOf,
  requestProblem,
  variablesIn,
  type RequestDraft,
} from "./request-draft.ts";
import { savedTitle } from "./saved-list.tsx";

type Part = "request" | "batch" | "history";

/** Where the last outcome of a saved request is kept: the first save begins the editor anew, and it should not be lost with that. */
const outcomeKey = (id: string) => ["replay-outcome", id] as const;

const refresh = () => queryClient.invalidateQueries({ queryKey: ["replay"] });

/** Writes a request, sends it, and shows what came of it. */
export function RequestEditor({
  saved,
  onSaved,
}: {
  /** Null for one that is not saved yet. */
  readonly saved: SavedRequest | null;
  readonly onSaved: (id: string) => void;
}) {
  const { before, draft, setDraft } = useRequestDraft(saved);
  const [variables, setVariables] = useState<Readonly<Record<string, string>>>({});
  const [follow, setFollow] = useState(false);
  const [part, setPart] = useState<Part>("request");
  const isChanged = saved === null || !isSameRequest(before, draft);
  const problem = requestProblem(draft);
  const store = async (): Promise<string> => {
    const body = { request: requestOf(draft), ...aboutOf(draft) };
    if (saved === null) return (await api.replay.saveRequest({ body })).id;
    await api.replay.updateSavedRequest({ params: { id: saved.id }, body: { ...body, tags: saved.tags } });
    return saved.id;
  };
  const save = useMutation({
    mutationFn: store,
    onSuccess: async (id) => {
      await refresh();
      toast({ tone: "success", title: "The request is saved", durationMs: 2500 });
      onSaved(id);
    },
  });
  const send = useMutation({
    mutationFn: async (): Promise<{ readonly result: ReplayResult; readonly savedId: string }> => {
      const modified = saved === null ? null : modificationsOf(before, draft);
      // What modifications cannot say has to be saved to be sent.
      const id = saved === null || modified === null ? await store() : saved.id;
      const result = await api.replay.executeReplay({
        params: { id },
        body: { modifications: { ...modified, follow_redirects: follow }, variables },
      });
      return { result, savedId: id };
    },
    onSuccess: async ({ result, savedId }) => {
      queryClient.setQueryData(outcomeKey(savedId), result);
      await refresh();
      if (saved === null) onSaved(savedId);
    },
  });
  const outcome = useQuery<ReplayResult>({
    queryKey: outcomeKey(saved?.id ?? ""),
    queryFn: skipToken,
    staleTime: Infinity,
  }).data;
  const names = variablesIn(draft);
  const form = (
    <div className={styles["panel"]}>
      <RequestForm draft={draft} onChange={setDraft} />
      {names.length > 0 && (
        <div className={styles["fields"]} role="group" aria-label="Variables">
          {names.map((name) => (
            <Field key={name} label={`{{${name}}}`}>
              <TextInput
                mono
                value={variables[name] ?? ""}
                onChange={(event) => setVariables({ ...variables, [name]: event.target.value })}
              />
            </Field>
          ))}
        </div>
      )}
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
        <Button icon={<Save size={14} />} disabled={problem !== null || save.isPending} onClick={() => save.mutate()}>
          Save
        </Button>
        <Button
          variant="primary"
          icon={<Play size={14} />}
          disabled={problem !== null || send.isPending}
          onClick={() => send.mutate()}
        >
          {saved !== null && isChanged ? "Send as changed" : "Send"}
        </Button>
      </div>
      <Tabs<Part>
        label="Parts of the request"
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

/** The draft, and what it was before somebody changed it. */
function useRequestDraft(saved: SavedRequest | null) {
  const [before, setBefore] = useState(() => (saved === null ? newRequest() : draftOfSaved(saved)));
  const [draft, setDraft] = useState<RequestDraft>(before);
  const [stamp, setStamp] = useState(saved?.updated_at);
  // A save begins the draft anew; the tab somebody went to meanwhile, and the variables, stay.
  if (saved !== null && saved.updated_at !== stamp) {
    const next = draftOfSaved(saved);
    setStamp(saved.updated_at);
    setBefore(next);
    setDraft(next);
  }
  return { before, draft, setDraft };
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
            placeholder="Called after its URL"
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
      <HeadersEditor
        label="Header fields"
        drafts={draft.headers}
        onChange={(headers) => onChange({ ...draft, headers })}
      />
      <BodyEditor draft={draft.body} onChange={(body) => onChange({ ...draft, body })} />
    </>
  );
}
