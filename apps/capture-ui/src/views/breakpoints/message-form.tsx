import { BodyEditor } from "../../rules/body-editor.tsx";
import { HeadersEditor } from "../../rules/headers-editor.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import styles from "./breakpoints.module.css";
import type { PausedDraft } from "./paused-draft.ts";

/** All of a message: first line, fields, body. */
export function MessageForm({
  title,
  draft,
  onChange,
  obstacle = null,
  coded = false,
}: {
  readonly title: string;
  readonly draft: PausedDraft;
  readonly onChange: (draft: PausedDraft) => void;
  /** Why the body cannot be edited. */
  readonly obstacle?: string | null;
  /** The content coding could not be undone: these are the bytes as they came. */
  readonly coded?: boolean;
}) {
  return (
    <div className={styles["message"]}>
      <h2>{title}</h2>
      {draft.side === "request" ? (
        <div className={styles["requestLine"]}>
          <Field label="Method">
            <TextInput
              mono
              maxLength={64}
              value={draft.method}
              onChange={(event) => onChange({ ...draft, method: event.target.value })}
            />
          </Field>
          <Field label="URL">
            <TextInput mono value={draft.url} onChange={(event) => onChange({ ...draft, url: event.target.value })} />
          </Field>
        </div>
      ) : (
        <div className={styles["requestLine"]}>
          <Field label="Status">
            <TextInput
              mono
              inputMode="numeric"
              maxLength={3}
              value={draft.status}
              onChange={(event) => onChange({ ...draft, status: event.target.value })}
            />
          </Field>
          <Field label="Reason">
            <TextInput
              mono
              maxLength={255}
              value={draft.reason}
              onChange={(event) => onChange({ ...draft, reason: event.target.value })}
            />
          </Field>
        </div>
      )}
      <HeadersEditor
        label="Header fields"
        drafts={draft.headers}
        onChange={(headers) => onChange({ ...draft, headers })}
      />
      <BodyEditor
        draft={draft.body}
        disabled={obstacle !== null}
        notice={
          obstacle ??
          (coded ? "Its content coding cannot be undone here: these are the bytes as they came." : undefined)
        }
        onChange={(body) => onChange({ ...draft, body })}
      />
    </div>
  );
}
