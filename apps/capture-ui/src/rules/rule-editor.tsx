import type { Breakpoint, Condition, TrafficEntry } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { api, errorText } from "../api.ts";
import { queryClient } from "../queries.ts";
import { useAction } from "../shell/actions.ts";
import { useLocation } from "../shell/router.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { isolatedName } from "../ui/format.ts";
import { toast } from "../ui/toast.tsx";
import { fieldErrors } from "./field-errors.ts";
import { conditionForRequest, nameForRequest } from "./from-entry.ts";
import styles from "./rule-parts.module.css";
import type { StoredDraft } from "./stored-draft.ts";

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

/**
 * Moves the focus to the first field of a new item's editor and restores it when the editor closes. Opening a stored
 * item leaves the focus in the list.
 */
export function useEditorFocus<Editor extends HTMLElement>(isNew: boolean): RefObject<Editor | null> {
  const editor = useRef<Editor>(null);
  useEffect(() => {
    const opener = document.activeElement;
    // Only form fields, and only on mount.
    if (isNew) editor.current?.querySelector<HTMLElement>("input, textarea")?.focus();
    return () => {
      if (document.activeElement !== document.body) return;
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- what was new is stored later, in the same editor
  }, []);
  return editor;
}

/** Reason of a refusal or failure, announced to screen readers at once. */
export function Refused({ children }: { readonly children: string | null | undefined }) {
  if (children === null || children === undefined) return null;
  return (
    <p className={styles["problem"]} role="alert">
      {children}
    </p>
  );
}

export function Failed({ error }: { readonly error: unknown }) {
  return error === null ? null : <Refused>{errorText(error)}</Refused>;
}

/**
 * Saves a rule, reports success, and assigns validation errors to `fields`. `topic` is the first part of its query
 * keys. Edits made during the save stay unsaved.
 */
export function useRuleSave<Body extends { readonly name?: string }, D>({
  topic,
  fields,
  stored: { draft, release, settle },
  save: store,
  onSaved,
}: {
  readonly topic: string;
  readonly fields: readonly string[];
  readonly stored: StoredDraft<D>;
  /** Stores the rule and returns its id. */
  readonly save: (body: Body) => Promise<string>;
  readonly onSaved: (id: string) => void;
}) {
  const sent = useRef(draft);
  const save = useMutation({
    mutationFn: async (body: Body) => {
      sent.current = draft;
      const id = await store(body);
      release();
      return id;
    },
    onSuccess: async (id, { name }) => {
      await queryClient.invalidateQueries({ queryKey: [topic] });
      settle(sent.current);
      toast({ tone: "success", title: `${name ?? "Rule"} saved` });
    },
  });
  const mutate = (body: Body): void => {
    // Passed here it is not called after the editor unmounts, so it does not navigate away from another screen.
    save.mutate(body, { onSuccess: onSaved });
  };
  return { save: { ...save, mutate }, refused: fieldErrors(save.error, fields) };
}

/**
 * The current version of an edited item; its last version after it was removed from the list. `begun` is the version at
 * opening, or a new item.
 */
export function useFollowed<Item extends object>(
  begun: Item,
  list: readonly Item[] | undefined,
): { readonly item: Item; readonly isGone: boolean } {
  const [last, setLast] = useState(begun);
  const id = idOf(begun);
  if (id === undefined || list === undefined) return { item: last, isGone: false };
  const now = list.find((item) => idOf(item) === id);
  if (now === undefined) return { item: last, isGone: true };
  if (now !== last) setLast(now);
  return { item: now, isGone: false };
}

function idOf(item: object): unknown {
  return "id" in item ? item.id : undefined;
}

/** The captured entry given by `?from=<id>`, to create a rule from; null without one or while it loads. */
export function usePrefill(): TrafficEntry | null {
  const { params } = useLocation();
  const from = params.get("from");
  const entry = useQuery({
    queryKey: ["entry", from, "prefill"],
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id: from ?? "" }, signal }),
    enabled: from !== null,
    staleTime: Infinity,
  });
  return from === null ? null : (entry.data ?? null);
}

/** Name, condition and direction of a rule for requests similar to an entry's. */
export function prefillOf(
  { request }: TrafficEntry,
  direction: string | null,
): { readonly name: string; readonly condition: Condition; readonly direction: Breakpoint["direction"] } {
  return {
    name: nameForRequest(request),
    condition: conditionForRequest(request),
    direction: direction === "response" || direction === "both" ? direction : "request",
  };
}
