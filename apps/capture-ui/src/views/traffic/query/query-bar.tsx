import type { Suggestion } from "@headworks/query-language";
import { History, Search, X } from "lucide-react";
import { useId, useMemo, useState } from "react";
import type { KeyboardEvent, RefObject } from "react";
import { IconButton } from "../../../ui/button.tsx";
import { classNames } from "../../../ui/class-names.ts";
import { Menu, type MenuEntry } from "../../../ui/menu.tsx";
import { Spinner } from "../../../ui/states.tsx";
import { CompletionList, suggestionId } from "./completion-list.tsx";
import { stretches } from "./highlight.ts";
import styles from "./query-bar.module.css";
import { viewPresets } from "./saved-views.ts";
import { useCompletions } from "./use-completions.ts";
import { useQueryDraft } from "./use-query-draft.ts";
import { dropView, rememberQuery, useViews } from "./view-store.ts";

interface QueryBarProps {
  readonly inputRef: RefObject<HTMLInputElement | null>;
  readonly q: string;
  /** Called a moment after typing stops, with a text that parses. */
  readonly onChange: (q: string) => void;
  readonly busy: boolean;
  /** What the service says against the query. */
  readonly problem: string | undefined;
  readonly onLeave: () => void;
}

/** The filter: coloured while it is typed, completed from the language and from traffic, explained in words. */
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
        {text !== "" && <IconButton label="Clear the filter" icon={<X size={14} />} onClick={() => apply("")} />}
        <Menu
          align="end"
          trigger={<IconButton label="Saved and earlier filters" icon={<History size={14} />} />}
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
        sentence !== undefined && (
          <p
            id={`${id}-say`}
            className={wrong ? styles["under"] : "visually-hidden"}
            title={wrong ? sentence : undefined}
          >
            {sentence}
          </p>
        )
      )}
    </search>
  );
}

/** A text field whose text is drawn in colours below its transparent own. */
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
  const forget: MenuEntry = {
    kind: "submenu",
    label: "Remove a saved view",
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
    ...(saved.length > 0 ? [heading("Saved views"), ...saved, forget, { kind: "separator" as const }] : []),
    ...(earlier.length > 0 ? [heading("Earlier"), ...earlier] : []),
  ];
}
