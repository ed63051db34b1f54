import { completions, describeQuery, parseQuery, type Suggestion } from "@headworks/query-language";
import { VALUE_FIELDS } from "@headworks/capture-contract";
import { History, Search, X } from "lucide-react";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import type { KeyboardEvent, Ref } from "react";
import { api, isAbort } from "../../../api.ts";
import { IconButton } from "../../../ui/button.tsx";
import { classNames } from "../../../ui/class-names.ts";
import { Menu, type MenuEntry } from "../../../ui/menu.tsx";
import { Spinner } from "../../../ui/states.tsx";
import { formatCount } from "../../../ui/format.ts";
import { stretches } from "./highlight.ts";
import styles from "./query-bar.module.css";
import { viewPresets } from "./saved-views.ts";
import { rememberQuery, useViews } from "./view-store.ts";

const APPLY_MS = 180;

/** Values for completion come from the traffic of the active session. */
async function seenValues(request: { readonly field: string; readonly prefix: string }, signal: AbortSignal) {
  const field = VALUE_FIELDS.find((known) => known === request.field);
  if (field === undefined) return [];
  try {
    return await api.traffic.listTrafficValues({ query: { field, prefix: request.prefix, limit: 20 }, signal });
  } catch (error) {
    if (isAbort(error)) return [];
    return [];
  }
}

interface QueryBarProps {
  readonly inputRef: Ref<HTMLInputElement>;
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
  const [text, setText] = useState(q);
  const [caret, setCaret] = useState(q.length);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const [suggestions, setSuggestions] = useState<readonly Suggestion[]>([]);
  const [scrolled, setScrolled] = useState(0);
  const applied = useRef(q);
  const id = useId();
  const views = useViews((state) => state.views);
  const presets = useMemo(() => viewPresets(views), [views]);
  const parsed = useMemo(() => parseQuery(text, { presets }), [text, presets]);
  const error = parsed.ok ? undefined : parsed.error;

  // The address may change from elsewhere: a menu, a saved view, the back button.
  useEffect(() => {
    if (q === applied.current) return;
    applied.current = q;
    setText(q);
    setCaret(q.length);
  }, [q]);

  useEffect(() => {
    if (text === applied.current || !parsed.ok) return undefined;
    const timer = window.setTimeout(() => {
      applied.current = text;
      onChange(text);
    }, APPLY_MS);
    return () => window.clearTimeout(timer);
  }, [text, parsed, onChange]);

  useEffect(() => {
    if (!open) return undefined;
    const controller = new AbortController();
    const timer = window.setTimeout(() => {
      completions(text, caret, (request) => seenValues(request, controller.signal), { presets }).then(
        (next) => {
          if (!controller.signal.aborted) {
            setSuggestions(next.slice(0, 20));
            setChosen(-1);
          }
        },
        () => setSuggestions([]),
      );
    }, 60);
    return () => {
      window.clearTimeout(timer);
      controller.abort();
    };
  }, [open, text, caret, presets]);

  const accept = (suggestion: Suggestion, input: HTMLInputElement | null): void => {
    const next = text.slice(0, suggestion.start) + suggestion.insert + text.slice(suggestion.end);
    const at = suggestion.start + suggestion.insert.length;
    setText(next);
    setCaret(at);
    requestAnimationFrame(() => {
      input?.focus();
      input?.setSelectionRange(at, at);
    });
  };
  const set = (next: string): void => {
    setText(next);
    setCaret(next.length);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    const suggestion = suggestions[chosen];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && open && suggestions.length > 0) {
      event.preventDefault();
      setChosen((chosen + step + suggestions.length + (chosen === -1 && step < 0 ? 1 : 0)) % suggestions.length);
    } else if (event.key === "Tab" && open && !event.shiftKey && suggestions.length > 0 && text !== "") {
      const first = suggestion ?? suggestions[0];
      if (first === undefined) return;
      event.preventDefault();
      accept(first, event.currentTarget);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (open && suggestion !== undefined) accept(suggestion, event.currentTarget);
      else if (parsed.ok) {
        applied.current = text;
        onChange(text);
        rememberQuery(text);
        setOpen(false);
        onLeave();
      }
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (open) setOpen(false);
      else onLeave();
    }
  };
  const sentence =
    error?.message ??
    problem ??
    (parsed.ok && text.trim() !== "" ? `Shows entries where ${describeQuery(parsed.query)}.` : undefined);
  const wrong = error !== undefined || problem !== undefined;
  return (
    <search className={styles["bar"]}>
      <div className={classNames(styles["field"], wrong && !open && styles["invalid"])}>
        {busy ? <Spinner label="Filtering" /> : <Search size={14} aria-hidden />}
        <div className={styles["text"]}>
          <div className={styles["paint"]} aria-hidden>
            <span style={{ marginLeft: -scrolled }}>
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
            aria-expanded={open && suggestions.length > 0}
            aria-controls={`${id}-list`}
            aria-autocomplete="list"
            aria-activedescendant={open && chosen >= 0 ? `${id}-${chosen}` : undefined}
            aria-invalid={wrong || undefined}
            aria-describedby={sentence === undefined ? undefined : `${id}-say`}
            placeholder="Filter: host:*.example.com  status:>=400  -type:image  or any text"
            spellCheck={false}
            autoComplete="off"
            autoCapitalize="off"
            onChange={(event) => {
              setText(event.target.value);
              setCaret(event.target.selectionStart ?? event.target.value.length);
              setOpen(true);
            }}
            onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? text.length)}
            onScroll={(event) => setScrolled(event.currentTarget.scrollLeft)}
            onFocus={() => setOpen(true)}
            onBlur={() => {
              setOpen(false);
              if (parsed.ok && text === applied.current) rememberQuery(text);
            }}
            onKeyDown={onKeyDown}
          />
        </div>
        {text !== "" && (
          <IconButton
            label="Clear the filter"
            icon={<X size={14} />}
            onClick={() => {
              set("");
              applied.current = "";
              onChange("");
            }}
          />
        )}
        <Menu
          align="end"
          trigger={<IconButton label="Earlier filters" icon={<History size={14} />} />}
          items={() => historyMenu(set)}
        />
      </div>
      {!open && sentence !== undefined && (
        <p id={`${id}-say`} className={wrong ? styles["under"] : "visually-hidden"}>
          {sentence}
        </p>
      )}
      {open && (
        <div className={styles["popup"]}>
          {sentence !== undefined && (
            <p
              id={`${id}-say`}
              className={classNames(styles["say"], wrong && styles["wrong"])}
              role={wrong ? "alert" : undefined}
            >
              {error === undefined ? sentence : `${error.message} (at character ${error.start + 1})`}
            </p>
          )}
          <div id={`${id}-list`} role="listbox" aria-label="Completions">
            {suggestions.map((suggestion, index) => (
              <div
                key={`${suggestion.kind}-${suggestion.label}`}
                id={`${id}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === chosen}
                className={styles["option"]}
                onPointerDown={(event) => {
                  event.preventDefault();
                  accept(suggestion, event.currentTarget.ownerDocument.querySelector(`[aria-controls="${id}-list"]`));
                }}
              >
                <code>{suggestion.label}</code>
                <span className={styles["detail"]}>{suggestion.detail}</span>
              </div>
            ))}
          </div>
        </div>
      )}
    </search>
  );
}

function historyMenu(set: (q: string) => void): readonly MenuEntry[] {
  const { history, views } = useViews.getState();
  const entry = (label: string, q: string, detail?: string): MenuEntry => ({
    kind: "item",
    label,
    ...(detail === undefined ? {} : { detail }),
    onSelect: () => set(q),
  });
  const saved: readonly MenuEntry[] =
    views.length === 0
      ? []
      : [{ kind: "heading", label: "Saved views" }, ...views.map((view) => entry(`@${view.name}`, view.q, view.q))];
  const earlier: readonly MenuEntry[] =
    history.length === 0
      ? [{ kind: "item", label: "No earlier filters", disabled: true, onSelect: () => undefined }]
      : [
          { kind: "heading", label: `Earlier (${formatCount(history.length)})` },
          ...history.slice(0, 15).map((q) => entry(q, q)),
        ];
  return [...saved, ...earlier];
}
