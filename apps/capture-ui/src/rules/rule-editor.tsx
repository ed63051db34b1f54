import { X } from "lucide-react";
import type { ReactNode } from "react";
import { useAction } from "../shell/actions.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { isolatedName } from "../ui/isolated-name.ts";
import styles from "./rule-parts.module.css";
import { useEditorFocus } from "./use-editor-focus.ts";
import type { StoredDraft } from "./use-stored-draft.ts";

type Unsaved = Pick<StoredDraft<unknown>, "isChanged" | "isOutdated" | "discard">;

/** Warns that the edited rule was changed or deleted by another client. */
export function ChangedElsewhere({
  noun,
  isGone,
  stored,
}: {
  readonly noun: string;
  readonly isGone: boolean;
  readonly stored: Unsaved;
}) {
  return (
    <div className={styles["elsewhere"]} role="alert">
      {isGone
        ? `This ${noun} was deleted elsewhere. Saving creates it again.`
        : `This ${noun} was changed elsewhere. Saving overwrites that change.`}
      {!isGone && <Button onClick={stored.discard}>Discard my changes</Button>}
    </div>
  );
}

/** The frame of a rule editor: a header with save and close, and the form. */
export function RuleEditor({
  noun,
  name,
  problem,
  isSaving,
  stored,
  onSubmit,
  onClose,
  children,
}: {
  /** Kind of the rule: `mock`. */
  readonly noun: string;
  /** Name of the stored rule; null for a new one. */
  readonly name: string | null;
  /** Validation error, shown after an attempt to save. */
  readonly problem: string | null;
  readonly isSaving: boolean;
  readonly stored: Unsaved;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  useAction("close", onClose);
  const editor = useEditorFocus<HTMLFormElement>(name === null);
  return (
    <form
      ref={editor}
      className={styles["editor"]}
      aria-label={
        name === null ? `New ${noun}` : `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${isolatedName(name)}`
      }
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <div className={styles["editorHead"]}>
        <h2>{name === null ? `New ${noun}` : `Edit ${noun}`}</h2>
        <span className={styles["grow"]} />
        {problem !== null && <span className={styles["problem"]}>{problem}</span>}
        {stored.isChanged && (
          <Button variant="ghost" onClick={stored.discard}>
            Discard
          </Button>
        )}
        <Button type="submit" variant="primary" disabled={isSaving}>
          {name === null ? "Create" : "Save"}
        </Button>
        <IconButton label="Close editor" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      {stored.isOutdated && !isSaving && <ChangedElsewhere noun={noun} isGone={name === null} stored={stored} />}
      {children}
    </form>
  );
}

/** Scrolling part of an editor without tabs. */
export function EditorBody({ children }: { readonly children: ReactNode }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["editorBody"]} tabIndex={0} role="group" aria-label="Rule">
      {children}
    </div>
  );
}

/** A pane beside a list, with a header and actions, that does not edit a rule. */
export function SidePanel({
  title,
  actions,
  onClose,
  children,
}: {
  readonly title: string;
  readonly actions: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  useAction("close", onClose);
  return (
    <section className={styles["editor"]} aria-label={title}>
      <div className={styles["editorHead"]}>
        <h2>{title}</h2>
        <span className={styles["grow"]} />
        {actions}
        <IconButton label="Close" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      {children}
    </section>
  );
}

/** Scrolling part of a pane, without padding. */
export function ScrollBody({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["scroll"]} tabIndex={0} role="group" aria-label={label}>
      {children}
    </div>
  );
}
