import { utf8Reading } from "@headworks/http-fields";
import { ArrowDown, ArrowUp, Plus, Trash2 } from "lucide-react";
import { Button, IconButton } from "../ui/button.tsx";
import { TextInput } from "../ui/field.tsx";
import styles from "./editors.module.css";
import { headerDraft, movedHeader, type HeaderDraft } from "./headers-draft.ts";

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
            className={styles["headerValue"]}
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
