import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { create } from "zustand";
import { useEffect, useRef, useState } from "react";
import type { FocusEvent, FormEvent, ReactNode, RefObject } from "react";
import { Button, IconButton } from "./button.tsx";
import { classNames } from "./class-names.ts";
import styles from "./dialog.module.css";

/**
 * A modal window. Focus moves in, stays in, and returns when it closes; Esc and a click outside close it. Once somebody
 * has written in its form, a click outside does nothing, and Esc asks first. When its form is refused, the first field
 * with an error gets the focus.
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
  /** `bare` has no padding and hides its title except from screen readers. */
  readonly size?: "normal" | "wide" | "bare" | undefined;
  /** Buttons at the end. */
  readonly actions?: ReactNode | undefined;
  /** Whether closing it would lose something, where its fields cannot tell: they may begin with a draft, or follow a store. */
  readonly isUnsaved?: boolean | undefined;
  /** With it the content is a form: Enter in a field submits, and a button of type `submit` does too. */
  readonly onSubmit?: (() => void) | undefined;
  readonly children?: ReactNode | undefined;
}) {
  const popup = useRef<HTMLDivElement>(null);
  const { isWritten, isAsking, watch, setAsking } = useWritten();
  const { awaitRefusal, forget } = useFirstError(popup);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Esc asked, and Enter is no answer to that.
    if (isAsking) return;
    awaitRefusal();
    onSubmit?.();
  };
  const close = (isOutside: boolean): void => {
    if (!(isUnsaved ?? isWritten())) onClose();
    else if (!isOutside) setAsking(!isAsking);
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
      {isAsking ? (
        <LeaveQuestion onStay={() => setAsking(false)} onLeave={onClose} />
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
            // The first field rather than the button that closes.
            initialFocus={() => popup.current?.querySelector<HTMLElement>("input, textarea") ?? popup.current}
            className={className}
            onFocus={onSubmit === undefined ? undefined : watch}
          >
            {onSubmit === undefined ? (
              content
            ) : (
              <form className={styles["form"]} onSubmit={submit} onInput={forget}>
                {content}
              </form>
            )}
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  );
}

/** Whether something is written in the text fields of a form that was not there at first, and whether it is asked about that. */
function useWritten() {
  /** The fields that had the focus, and what each said then. A choice is made again with one click; text is not. */
  const fields = useRef(new Map<HTMLInputElement | HTMLTextAreaElement, string>());
  const [isAsking, setAsking] = useState(false);
  return {
    isAsking,
    setAsking,
    isWritten: (): boolean => [...fields.current].some(([field, first]) => field.isConnected && field.value !== first),
    watch: ({ target }: FocusEvent<HTMLElement>): void => {
      const isText =
        target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && !NO_TEXT.includes(target.type));
      if (isText && !fields.current.has(target)) fields.current.set(target, target.value);
    },
  };
}

/** Leads to the first field in error once the errors of a submitted form are there: at once, or when the service answers. */
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
    awaitRefusal: (): void => {
      isAwaited.current = true;
    },
    /** Who writes on is not to be led away. */
    forget: (): void => {
      isAwaited.current = false;
    },
  };
}

const NO_TEXT: readonly string[] = ["checkbox", "radio", "button", "range", "file"];

const focusNow = (element: HTMLButtonElement | null): void => element?.focus();

/** Stands in the place of a window's buttons when closing it would lose what was written. */
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
  /** Text of the button that goes ahead: a verb. */
  readonly action: string;
  readonly danger?: boolean | undefined;
}

const useQuestion = create<{ readonly open: (Question & { readonly response: (yes: boolean) => void }) | null }>(
  () => ({
    open: null,
  }),
);

/** Asks before something that cannot be undone. Resolves to false when the user closes the window. */
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

/** Place where {@link confirmAction} shows its window; the shell renders it once. */
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
