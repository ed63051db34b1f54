import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { create } from "zustand";
import { useEffect, useRef, useState } from "react";
import type { FocusEvent, FormEvent, ReactNode, RefObject } from "react";
import { Button, IconButton } from "./button.tsx";
import { classNames } from "./class-names.ts";
import styles from "./dialog.module.css";

/**
 * A modal window that traps and restores the focus; Esc and a click outside close it. Once its form has been edited, a
 * click outside does nothing and Esc asks for confirmation. When its form is refused, the first field with an error is
 * focused.
 */
export function Dialog({
  open,
  onClose,
  title,
  description,
  size = "normal",
  actions,
  isUnsaved,
  onSubmit,
  children,
}: {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly description?: ReactNode | undefined;
  /** `bare` has no padding and shows its title to screen readers only. */
  readonly size?: "normal" | "wide" | "bare" | undefined;
  readonly actions?: ReactNode | undefined;
  /** Whether closing loses edits that the fields cannot reveal, such as restored drafts. */
  readonly isUnsaved?: boolean | undefined;
  /** Makes the content a form, submitted by Enter or a button of type `submit`. */
  readonly onSubmit?: (() => void) | undefined;
  readonly children?: ReactNode | undefined;
}) {
  const popup = useRef<HTMLDivElement>(null);
  const { isEdited, isConfirming, watch, setConfirming } = useEdited();
  const { awaitErrors, cancel } = useFirstError(popup);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // The confirmation is open; Enter must not submit.
    if (isConfirming) return;
    awaitErrors();
    onSubmit?.();
  };
  const close = (isOutside: boolean): void => {
    if (!(isUnsaved ?? isEdited())) onClose();
    else if (!isOutside) setConfirming(!isConfirming);
  };
  const content = (
    <>
      {size === "bare" ? (
        <Base.Title className="visually-hidden">{title}</Base.Title>
      ) : (
        <div className={styles["head"]}>
          <Base.Title className={styles["title"]}>{title}</Base.Title>
          <IconButton label="Close" icon={<X size={16} />} onClick={() => close(false)} />
        </div>
      )}
      {description !== undefined && (
        <Base.Description className={styles["description"]}>{description}</Base.Description>
      )}
      {children}
      {isConfirming ? (
        <LeaveQuestion onStay={() => setConfirming(false)} onLeave={onClose} />
      ) : (
        actions !== undefined && <div className={styles["actions"]}>{actions}</div>
      )}
    </>
  );
  const className = classNames(
    styles["popup"],
    size === "wide" && styles["wide"],
    size === "bare" && classNames(styles["wide"], styles["bare"]),
  );
  return (
    <Base.Root
      open={open}
      onOpenChange={(next, { reason }) => {
        if (!next) close(reason === "outside-press");
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={styles["scrim"]} />
        <Base.Viewport className={styles["viewport"]}>
          <Base.Popup
            ref={popup}
            // The first field rather than the close button.
            initialFocus={() => popup.current?.querySelector<HTMLElement>("input, textarea") ?? popup.current}
            className={className}
            onFocus={onSubmit === undefined ? undefined : watch}
          >
            {onSubmit === undefined ? (
              content
            ) : (
              <form className={styles["form"]} onSubmit={submit} onInput={cancel}>
                {content}
              </form>
            )}
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  );
}

/** Tracks whether text fields were edited, and whether the confirmation is open. */
function useEdited() {
  /** Initial text of each focused field. Choices are ignored: they can be restored with one click. */
  const fields = useRef(new Map<HTMLInputElement | HTMLTextAreaElement, string>());
  const [isConfirming, setConfirming] = useState(false);
  return {
    isConfirming,
    setConfirming,
    isEdited: (): boolean => [...fields.current].some(([field, first]) => field.isConnected && field.value !== first),
    watch: ({ target }: FocusEvent<HTMLElement>): void => {
      const isText =
        target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && !NO_TEXT.includes(target.type));
      if (isText && !fields.current.has(target)) fields.current.set(target, target.value);
    },
  };
}

/** Focuses the first invalid field once errors appear, synchronously or after the response. */
function useFirstError(form: RefObject<HTMLElement | null>) {
  const isAwaited = useRef(false);
  useEffect(() => {
    if (!isAwaited.current) return;
    const field = form.current?.querySelector<HTMLElement>("[aria-invalid=true]") ?? null;
    if (field === null) return;
    isAwaited.current = false;
    field.focus();
  });
  return {
    awaitErrors: (): void => {
      isAwaited.current = true;
    },
    /** Cancels a pending jump to the refused field. */
    cancel: (): void => {
      isAwaited.current = false;
    },
  };
}

const NO_TEXT: readonly string[] = ["checkbox", "radio", "button", "range", "file"];
const focusNow = (element: HTMLButtonElement | null): void => element?.focus();

/** Replaces a dialog's buttons when closing would lose edits. */
function LeaveQuestion({ onStay, onLeave }: { readonly onStay: () => void; readonly onLeave: () => void }) {
  return (
    <div className={styles["actions"]}>
      <span className={styles["question"]} role="alert">
        You have unsaved changes.
      </span>
      <Button variant="danger" onClick={onLeave}>
        Close without saving
      </Button>
      <Button ref={focusNow} onClick={onStay}>
        Keep editing
      </Button>
    </div>
  );
}

interface Question {
  readonly title: string;
  readonly text: ReactNode;
  /** Label of the confirm button: a verb. */
  readonly action: string;
  readonly danger?: boolean | undefined;
}

const useQuestion = create<{ readonly open: (Question & { readonly response: (yes: boolean) => void }) | null }>(
  () => ({
    open: null,
  }),
);

/** Asks for confirmation of an irreversible action. Resolves to false when the dialog is dismissed. */
export function confirmAction(question: Question): Promise<boolean> {
  useQuestion.getState().open?.response(false);
  return new Promise((resolve) => {
    useQuestion.setState({
      open: {
        ...question,
        response: (yes) => {
          useQuestion.setState({ open: null });
          resolve(yes);
        },
      },
    });
  });
}

/** Renders the dialog of {@link confirmAction}; mounted once by the shell. */
export function ConfirmHost() {
  const question = useQuestion((state) => state.open);
  if (question === null) return null;
  return (
    <Dialog
      open
      title={question.title}
      description={question.text}
      onClose={() => question.response(false)}
      onSubmit={() => question.response(true)}
      actions={
        <>
          <Button onClick={() => question.response(false)}>Cancel</Button>
          <Button type="submit" variant={question.danger === true ? "danger" : "primary"}>
            {question.action}
          </Button>
        </>
      }
    />
  );
}
