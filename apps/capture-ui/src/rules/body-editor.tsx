import { FileUp } from "lucide-react";
import { useRef } from "react";
import { Button } from "../ui/button.tsx";
import { TextArea } from "../ui/field.tsx";
import { formatBytes } from "../ui/format.ts";
import { Segmented } from "../ui/segmented.tsx";
import { draftBytes, draftOfBytes, type BodyDraft } from "./body-draft.ts";
import styles from "./editors.module.css";
import { indentedJson } from "./message-text.ts";

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
