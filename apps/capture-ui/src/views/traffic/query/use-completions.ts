import { VALUE_FIELDS } from "@headworks/capture-contract";
import { completions, type Presets, type Suggestion } from "@headworks/query-language";
import { useEffect, useState } from "react";
import { api } from "../../../api.ts";

const MOST = 20;

/** Values for completion come from the traffic of the active session; without an answer there are none. */
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

const NOTHING: readonly Suggestion[] = [];

/** What could be typed at the caret. Suggestions for another text are none: accepting one would garble this text. */
export function useCompletions(open: boolean, text: string, caret: number, presets: Presets): readonly Suggestion[] {
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
