import type { Breakpoint, Condition, TrafficEntry } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { api, errorText } from "../api.ts";
import { queryClient } from "../queries.ts";
import { keysOf, useAction } from "../shell/actions.ts";
import { useLocation } from "../shell/router.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { isolatedName } from "../ui/format.ts";
import { toast } from "../ui/toast.tsx";
import { fieldErrors } from "./field-errors.ts";
import { conditionForRequest, nameForRequest } from "./from-entry.ts";
import styles from "./rule-parts.module.css";
import { type StoredDraft, useStoredDraft } from "./stored-draft.ts";

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
  useAction("save", isSaving ? undefined : onSubmit);
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
        <Button type="submit" variant="primary" disabled={isSaving} title={keysOf("save")}>
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

/** Focuses the first field of a new item's editor and restores the focus when it closes. */
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

/** A rule in its editor. The condition is separate, because it may be incomplete. */
export interface RuleDraft<Form> {
  readonly form: Form;
  readonly condition: Condition | null;
}

type Built<Body> = { readonly ok: true; readonly rule: Body } | { readonly ok: false; readonly message: string };

/**
 * Keeps the draft of a rule and saves it; assigns validation errors to `fields`. `editor` are the props for {@link
 * RuleEditor}. Edits made during the save stay unsaved.
 */
export function useRuleForm<Form extends object, B extends Built<{ readonly name?: string }>>({
  name,
  start,
  topic,
  fields,
  build,
  save: store,
  onSaved,
}: {
  /** Name under which an unsaved draft is kept. */
  readonly name: string;
  /** The same object until the stored rule changes. */
  readonly start: RuleDraft<Form>;
  /** First part of the query keys. */
  readonly topic: string;
  readonly fields: readonly string[];
  readonly build: (form: Form, condition: Condition | null) => B;
  /** Stores the rule and returns its id. */
  readonly save: (body: Extract<B, { readonly ok: true }>["rule"]) => Promise<string>;
  readonly onSaved: (id: string) => void;
}) {
  const stored = useStoredDraft(name, start);
  const { draft } = stored;
  const [tried, setTried] = useState(false);
  const built = build(draft.form, draft.condition);
  const sent = useRef({ draft, start });
  const save = useMutation({
    mutationFn: async (body: Extract<B, { readonly ok: true }>["rule"]) => {
      sent.current = { draft, start };
      const id = await store(body);
      stored.release();
      return id;
    },
    onSuccess: async (id, { name: savedName }) => {
      await queryClient.invalidateQueries({ queryKey: [topic] });
      stored.settle(sent.current.draft, sent.current.start);
      toast({ tone: "success", title: `${savedName ?? "Rule"} saved` });
    },
  });
  const write = (change: Partial<RuleDraft<Form>>): void => {
    stored.set({ ...draft, ...change });
    save.reset();
  };
  const onSubmit = (): void => {
    setTried(true);
    // Passed here `onSaved` is not called after the editor unmounts, so it does not navigate away from another screen.
    if (built.ok) save.mutate(built.rule, { onSuccess: onSaved });
  };
  return {
    draft: draft.form,
    condition: draft.condition,
    revision: stored.revision,
    built,
    /** Whether saving was attempted, so that problems are shown. */
    tried,
    refused: fieldErrors(save.error, fields),
    set: (change: Partial<Form>) => write({ form: { ...draft.form, ...change } }),
    setCondition: (condition: Condition | null) => write({ condition }),
    editor: { problem: tried && !built.ok ? built.message : null, isSaving: save.isPending, stored, onSubmit },
  };
}

/** The current version of an edited item, or its last after removal. `begun`: the one at opening. */
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
