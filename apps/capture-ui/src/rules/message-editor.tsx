import { utf8Reading } from "@headworks/http-fields";
import { ArrowDown, ArrowUp, FileUp, Plus, Trash2 } from "lucide-react";
import { useRef } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { TextArea, TextInput } from "../ui/field.tsx";
import { formatBytes } from "../ui/format.ts";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./editors.module.css";
import {
  type BodyDraft,
  draftBytes,
  draftOfBytes,
  headerDraft,
  type HeaderDraft,
  movedHeader,
} from "./message-draft.ts";
import { indentedJson } from "./message-text.ts";

/** Edits headers in order; names may repeat. */
export function HeadersEditor({
  label,
  drafts,
  onChange,
}: {
  readonly label: string;
  readonly drafts: readonly HeaderDraft[];
  readonly onChange: (drafts: readonly HeaderDraft[]) => void;
}) {
  const set = (key: number, change: Partial<HeaderDraft>): void =>
    onChange(drafts.map((draft) => (draft.key === key ? { ...draft, ...change } : draft)));
  return (
    <div className={styles["headers"]} role="group" aria-label={label}>
      <div className={styles["partHead"]}>
        <h3>{label}</h3>
        <Button variant="ghost" icon={<Plus size={14} />} onClick={() => onChange([...drafts, headerDraft()])}>
          Add header
        </Button>
      </div>
      {drafts.length === 0 && <p className={styles["none"]}>No headers</p>}
      {drafts.map((draft, index) => (
        <div key={draft.key} className={styles["headerLine"]}>
          <TextInput
            mono
            className={styles["headerName"]}
            aria-label={`Header name ${index + 1}`}
            placeholder="Name"
            maxLength={255}
            value={draft.name}
            onChange={(event) => set(draft.key, { name: event.target.value })}
          />
          <TextInput
            mono
            aria-label={draft.name === "" ? `Value of header ${index + 1}` : `Value of ${draft.name}`}
            placeholder="Value"
            value={draft.value}
            onChange={(event) => set(draft.key, { value: event.target.value })}
          />
          <span className={styles["lineActions"]}>
            <IconButton
              label="Move up"
              icon={<ArrowUp size={13} />}
              disabled={index === 0}
              onClick={() => onChange(movedHeader(drafts, draft.key, -1))}
            />
            <IconButton
              label="Move down"
              icon={<ArrowDown size={13} />}
              disabled={index === drafts.length - 1}
              onClick={() => onChange(movedHeader(drafts, draft.key, 1))}
            />
            <IconButton
              label={`Remove ${draft.name === "" ? "header" : draft.name}`}
              icon={<Trash2 size={13} />}
              onClick={() => onChange(drafts.filter((other) => other.key !== draft.key))}
            />
          </span>
          <Reading octets={draft.value} />
        </div>
      ))}
    </div>
  );
}

/** The value's bytes decoded as UTF-8, for values shown byte by byte. */
function Reading({ octets }: { readonly octets: string }) {
  const reading = utf8Reading(octets);
  return reading === undefined ? null : <p className={styles["reading"]}>As UTF-8: {reading}</p>;
}

/** Edits a body as text, or as base64 for binary data; can load a file. */
export function BodyEditor({
  label = "Body",
  draft,
  onChange,
  notice,
  disabled = false,
}: {
  readonly label?: string;
  readonly draft: BodyDraft;
  readonly onChange: (draft: BodyDraft) => void;
  /** A notice shown before editing. */
  readonly notice?: string | undefined;
  readonly disabled?: boolean;
}) {
  const file = useRef<HTMLInputElement>(null);
  const bytes = draftBytes(draft);
  const recode = (encoding: BodyDraft["encoding"]): void => {
    if (encoding === draft.encoding) return;
    if (encoding === "base64") {
      const binary = Array.from(bytes ?? [], (byte) => String.fromCharCode(byte)).join("");
      onChange({ encoding, text: btoa(binary) });
    } else {
      onChange({ encoding, text: new TextDecoder().decode(bytes ?? new Uint8Array()) });
    }
  };
  const load = async (chosen: File | undefined): Promise<void> => {
    if (chosen !== undefined) onChange(draftOfBytes(new Uint8Array(await chosen.arrayBuffer())));
  };
  return (
    <div className={styles["body"]}>
      <div className={styles["partHead"]}>
        <h3>{label}</h3>
        <span className={styles["quiet"]}>{bytes === null ? "not valid base64" : formatBytes(bytes.length)}</span>
        <span className={styles["grow"]} />
        {draft.encoding === "utf8" && !disabled && <PrettyButton draft={draft} onChange={onChange} />}
        <Button
          variant="ghost"
          icon={<FileUp size={14} />}
          aria-label="Load the body from a file"
          title="Load the body from a file"
          disabled={disabled}
          onClick={() => file.current?.click()}
        />
        <input
          ref={file}
          type="file"
          hidden
          aria-label="Body file"
          onChange={(event) => {
            void load(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
        <Segmented
          label="Body encoding"
          value={draft.encoding}
          options={[
            { value: "utf8", label: "Text", disabled },
            { value: "base64", label: "Base64", disabled },
          ]}
          onChange={recode}
        />
      </div>
      {notice !== undefined && <p className={styles["notice"]}>{notice}</p>}
      <TextArea
        mono
        rows={8}
        spellCheck={false}
        disabled={disabled}
        aria-label={label}
        aria-invalid={bytes === null || undefined}
        value={draft.text}
        onChange={(event) => onChange({ ...draft, text: event.target.value })}
      />
    </div>
  );
}

function PrettyButton({
  draft,
  onChange,
}: {
  readonly draft: BodyDraft;
  readonly onChange: (draft: BodyDraft) => void;
}) {
  const pretty = indentedJson(draft.text);
  if (pretty === null || pretty === draft.text) return null;
  return (
    <Button variant="ghost" onClick={() => onChange({ ...draft, text: pretty })}>
      Indent
    </Button>
  );
}
