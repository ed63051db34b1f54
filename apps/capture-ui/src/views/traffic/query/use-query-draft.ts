import { describeQuery, parseQuery, type Presets } from "@headworks/query-language";
import { useEffect, useMemo, useState } from "react";

const APPLY_MS = 180;

/** The text while it is typed, and what it means. It is applied a moment after typing stops, if it can be understood. */
export function useQueryDraft(q: string, presets: Presets, onChange: (q: string) => void) {
  const [text, setText] = useState(q);
  const [applied, setApplied] = useState(q);
  // The address may change from elsewhere: a menu, a saved view, the back button.
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
    /** The filter in words; undefined for the empty one and for a text that is no query. */
    inWords: parsed.ok && text.trim() !== "" ? `Shows entries where ${describeQuery(parsed.query)}.` : undefined,
  };
}
