import { History, Search, X } from "lucide-react";
import { type KeyboardEvent, type RefObject, useEffect, useId, useMemo, useState } from "react";
import { VALUE_FIELDS } from "@headworks/capture-contract";
import { completions, describeQuery, parseQuery, type Presets, type Suggestion } from "@headworks/query-language";
import { api } from "../../../api.ts";
import { IconButton } from "../../../ui/button.tsx";
import { classNames } from "../../../ui/class-names.ts";
import { Menu, type MenuEntry } from "../../../ui/menu.tsx";
import { Spinner } from "../../../ui/states.tsx";
import styles from "./query-bar.module.css";
import { dropView, rememberQuery, useViews, viewPresets } from "./saved-views.ts";
import { stretches } from "./highlight.ts";

const MOST = 20;
const NOTHING: readonly Suggestion[] = [];
const APPLY_MS = 180;

interface QueryBarProps {
  readonly inputRef: RefObject<HTMLInputElement | null>;
  readonly q: string;
  /** Called shortly after typing stops, with a valid query. */
  readonly onChange: (q: string) => void;
  readonly busy: boolean;
  /** Error of the service about the query. */
  readonly problem: string | undefined;
  readonly onLeave: () => void;
}

/** The filter with syntax colouring, completion and an explanation. */
export function QueryBar({ inputRef, q, onChange, busy, problem, onLeave }: QueryBarProps) {
  const [caret, setCaret] = useState(q.length);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const id = useId();
  const listId = `${id}-list`;
  const views = useViews((state) => state.views);
  const presets = useMemo(() => viewPresets(views), [views]);
  const { text, setText, apply, error, inWords } = useQueryDraft(q, presets, onChange);
  const suggestions = useCompletions(open, text, caret, presets);
  const at = Math.min(chosen, suggestions.length - 1);
  const wrong = error !== undefined || problem !== undefined;
  const sentence = error === undefined ? (problem ?? inWords) : `${error.message} (at character ${error.start + 1})`;

  const type = (next: string, position: number): void => {
    setText(next);
    setCaret(position);
    setChosen(-1);
    setOpen(true);
  };
  const accept = ({ start, end, insert }: Suggestion): void => {
    const position = start + insert.length;
    type(text.slice(0, start) + insert + text.slice(end), position);
    requestAnimationFrame(() => {
      inputRef.current?.focus();
      inputRef.current?.setSelectionRange(position, position);
    });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const count = suggestions.length;
    const suggestion = suggestions[at];
    const first = suggestion ?? suggestions[0];
    if (step !== undefined && open && count > 0) {
      setChosen(at === -1 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count);
    } else if (event.key === "Tab" && open && !event.shiftKey && first !== undefined && text !== "") {
      accept(first);
    } else if (event.key === "Enter") {
      if (open && suggestion !== undefined) accept(suggestion);
      else if (error === undefined) {
        apply(text);
        rememberQuery(text);
        setOpen(false);
        onLeave();
      }
    } else if (event.key === "Escape") {
      if (open) setOpen(false);
      else onLeave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search className={styles["bar"]}>
      <div className={classNames(styles["field"], wrong && !open && styles["invalid"])}>
        {busy ? <Spinner label="Filtering" /> : <Search size={14} aria-hidden />}
        <PaintedInput
          inputRef={inputRef}
          text={text}
          error={error}
          listId={listId}
          expanded={open && suggestions.length > 0}
          active={open && at >= 0 ? suggestionId(listId, at) : undefined}
          wrong={wrong}
          describedBy={sentence === undefined ? undefined : `${id}-say`}
          onType={type}
          onCaret={setCaret}
          onFocus={() => setOpen(true)}
          onBlur={() => {
            setOpen(false);
            if (error === undefined) rememberQuery(text);
          }}
          onKeyDown={onKeyDown}
        />
        {text !== "" && <IconButton label="Clear filter" icon={<X size={14} />} onClick={() => apply("")} />}
        <Menu
          align="end"
          trigger={<IconButton label="Saved and recent filters" icon={<History size={14} />} />}
          items={() => historyMenu(apply)}
        />
      </div>
      {open ? (
        <CompletionList
          listId={listId}
          sayId={`${id}-say`}
          sentence={sentence}
          wrong={wrong}
          suggestions={suggestions}
          chosen={at}
          onAccept={accept}
        />
      ) : (
        <Explanation id={`${id}-say`} sentence={sentence} wrong={wrong} />
      )}
    </search>
  );
}

/** The meaning of the filter for screen readers, or its error for all. */
function Explanation({
  id,
  sentence,
  wrong,
}: {
  readonly id: string;
  readonly sentence: string | undefined;
  readonly wrong: boolean;
}) {
  if (sentence === undefined) return null;
  return (
    <p id={id} className={wrong ? styles["under"] : "visually-hidden"} title={wrong ? sentence : undefined}>
      {sentence}
    </p>
  );
}

/** A text field with transparent text over a coloured copy. */
function PaintedInput({
  inputRef,
  text,
  error,
  listId,
  expanded,
  active,
  wrong,
  describedBy,
  onType,
  onCaret,
  onFocus,
  onBlur,
  onKeyDown,
}: {
  readonly inputRef: RefObject<HTMLInputElement | null>;
  readonly text: string;
  readonly error: { readonly start: number; readonly end: number } | undefined;
  readonly listId: string;
  readonly expanded: boolean;
  readonly active: string | undefined;
  readonly wrong: boolean;
  readonly describedBy: string | undefined;
  readonly onType: (text: string, caret: number) => void;
  readonly onCaret: (caret: number) => void;
  readonly onFocus: () => void;
  readonly onBlur: () => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLInputElement>) => void;
}) {
  const [scrolledPx, setScrolledPx] = useState(0);
  return (
    <div className={styles["text"]}>
      <div className={styles["paint"]} aria-hidden>
        <span style={{ marginLeft: -scrolledPx }}>
          {stretches(text, error).map((part) => (
            <span key={part.start} data-kind={part.kind} data-wrong={part.wrong || undefined}>
              {part.text}
            </span>
          ))}
        </span>
      </div>
      <input
        ref={inputRef}
        className={styles["input"]}
        value={text}
        role="combobox"
        aria-label="Filter"
        aria-autocomplete="list"
        aria-expanded={expanded}
        aria-controls={listId}
        aria-activedescendant={active}
        aria-invalid={wrong || undefined}
        aria-describedby={describedBy}
        placeholder="Filter: host:*.example.com  status:>=400  -type:image  or any text"
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        maxLength={4096}
        onChange={(event) => onType(event.target.value, event.target.selectionStart ?? event.target.value.length)}
        onSelect={(event) => onCaret(event.currentTarget.selectionStart ?? text.length)}
        onScroll={(event) => setScrolledPx(event.currentTarget.scrollLeft)}
        onFocus={onFocus}
        onBlur={onBlur}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

function historyMenu(apply: (q: string) => void): readonly MenuEntry[] {
  const { history, views } = useViews.getState();
  const saved = views.map((view): MenuEntry => ({
    kind: "item",
    label: `@${view.name}`,
    detail: view.q,
    onSelect: () => apply(view.q),
  }));
  const earlier = history.slice(0, 15).map((q): MenuEntry => ({ kind: "item", label: q, onSelect: () => apply(q) }));
  const removal: MenuEntry = {
    kind: "submenu",
    label: "Remove saved view",
    items: views.map((view): MenuEntry => ({
      kind: "item",
      label: `@${view.name}`,
      danger: true,
      onSelect: () => dropView(view.name),
    })),
  };
  const heading = (label: string): MenuEntry => ({ kind: "heading", label });
  if (saved.length + earlier.length === 0) return [heading("No filters yet")];
  return [
    ...(saved.length > 0 ? [heading("Saved views"), ...saved, removal, { kind: "separator" as const }] : []),
    ...(earlier.length > 0 ? [heading("Recent"), ...earlier] : []),
  ];
}

function suggestionId(listId: string, index: number): string {
  return `${listId}-${index}`;
}

/** Shown while the filter is focused: its meaning or error, and completions. */
function CompletionList({
  listId,
  sayId,
  sentence,
  wrong,
  suggestions,
  chosen,
  onAccept,
}: {
  readonly listId: string;
  readonly sayId: string;
  readonly sentence: string | undefined;
  readonly wrong: boolean;
  readonly suggestions: readonly Suggestion[];
  readonly chosen: number;
  readonly onAccept: (suggestion: Suggestion) => void;
}) {
  return (
    <div className={styles["popup"]}>
      {sentence !== undefined && (
        <p
          id={sayId}
          className={classNames(styles["say"], wrong && styles["wrong"])}
          role={wrong ? "alert" : undefined}
        >
          {sentence}
        </p>
      )}
      <div id={listId} role="listbox" aria-label="Completions">
        {suggestions.map((suggestion, index) => (
          <div
            key={`${suggestion.kind} ${suggestion.label}`}
            id={suggestionId(listId, index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className={styles["option"]}
            onPointerDown={(event) => {
              // Keeps the focus in the input.
              event.preventDefault();
              onAccept(suggestion);
            }}
          >
            <code>{suggestion.label}</code>
            <span className={styles["detail"]}>{suggestion.detail}</span>
          </div>
        ))}
      </div>
      <p className={styles["hint"]}>Tab to complete, arrows to select, Enter to apply</p>
    </div>
  );
}

/** The typed text and its meaning. A valid text is applied shortly after typing stops. */
function useQueryDraft(q: string, presets: Presets, onChange: (q: string) => void) {
  const [text, setText] = useState(q);
  const [applied, setApplied] = useState(q);
  // The URL may change elsewhere: a menu, a saved view, the back button.
  if (q !== applied) {
    setApplied(q);
    setText(q);
  }
  const parsed = useMemo(() => parseQuery(text, { presets }), [text, presets]);
  const apply = (next: string): void => {
    setText(next);
    setApplied(next.trim() === "" ? "" : next);
    onChange(next);
  };
  useEffect(() => {
    if (text === applied || (text.trim() === "" && applied === "") || !parsed.ok) return undefined;
    const timer = window.setTimeout(() => {
      setApplied(text.trim() === "" ? "" : text);
      onChange(text);
    }, APPLY_MS);
    return () => window.clearTimeout(timer);
  }, [text, applied, parsed, onChange]);
  return {
    text,
    setText,
    apply,
    error: parsed.ok ? undefined : parsed.error,
    /** The filter in words; undefined if empty or invalid. */
    inWords: parsed.ok && text.trim() !== "" ? `Shows requests where ${describeQuery(parsed.query)}.` : undefined,
  };
}

/** Completion values from the traffic of the active session; none if the request fails. */
async function seenValues(request: { readonly field: string; readonly prefix: string }, signal: AbortSignal) {
  const field = VALUE_FIELDS.find((known) => known === request.field);
  if (field === undefined) return [];
  try {
    return await api.traffic.listTrafficValues({ query: { field, prefix: request.prefix, limit: MOST }, signal });
  } catch {
    return [];
  }
}

interface Found {
  readonly text: string;
  readonly caret: number;
  readonly suggestions: readonly Suggestion[];
}

/** Completions at the caret. Suggestions for an outdated text are discarded. */
function useCompletions(open: boolean, text: string, caret: number, presets: Presets): readonly Suggestion[] {
  const [found, setFound] = useState<Found>();
  useEffect(() => {
    if (!open) return undefined;
    const controller = new AbortController();
    void completions(text, caret, (request) => seenValues(request, controller.signal), { presets }).then((next) => {
      if (!controller.signal.aborted) setFound({ text, caret, suggestions: next.slice(0, MOST) });
    });
    return () => controller.abort();
  }, [open, text, caret, presets]);
  return found?.text === text && found.caret === caret ? found.suggestions : NOTHING;
}
