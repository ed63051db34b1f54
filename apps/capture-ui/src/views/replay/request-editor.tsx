import type { ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { skipToken, useQuery } from "@tanstack/react-query";
import { Play, Save } from "lucide-react";
import { useMemo, useState } from "react";
import { BodyEditor } from "../../rules/body-editor.tsx";
import { HeadersEditor } from "../../rules/headers-editor.tsx";
import { Failed } from "../../rules/refused.tsx";
import { ChangedElsewhere } from "../../rules/rule-editor.tsx";
import { useEditorFocus } from "../../rules/use-editor-focus.ts";
import { useStoredDraft } from "../../rules/use-stored-draft.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { BatchTab } from "./batch-tab.tsx";
import { HistoryTab } from "./history-tab.tsx";
import { Outcome } from "./outcome.tsx";
import styles from "./replay.module.css";
import {
  draftOfSaved,
  isSameRequest,
  newRequest,
  requestProblem,
  variablesIn,
  type RequestDraft,
} from "./request-draft.ts";
import { savedTitle } from "./saved-list.tsx";
import { enteredVariables, outcomeKey, useRequestCalls, type Variables } from "./use-request-calls.ts";

type Part = "request" | "batch" | "history";

/** Writes a request, sends it, and shows what came of it. */
export function RequestEditor({
  saved,
  keptAs,
  isGone,
  onSaved,
}: {
  /** Null for one that is not saved yet. */
  readonly saved: SavedRequest | null;
  /** Under which an unsaved draft is kept. */
  readonly keptAs: string;
  /** It was deleted elsewhere while it was written. */
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
              // Called while the editor is there: who went to another screen stays there.
              onSuccess: ({ savedId }) => {
                if (saved === null) onSaved(savedId);
              },
            })
          }
        >
          {saved !== null && isChanged ? "Send as changed" : "Send"}
        </Button>
      </div>
      {stored.isOutdated && !isBusy && <ChangedElsewhere noun="request" isGone={isGone} stored={stored} />}
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
