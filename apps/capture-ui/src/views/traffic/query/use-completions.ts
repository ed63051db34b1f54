// Tested by ../../../../../../e2e/ui-traffic.test.ts
import { VALUE_FIELDS } from "@headworks/capture-contract";
import { completions, type Presets, type Suggestion } from "@headworks/query-language";
import { useEffect, useState } from "react";
import { api } from "../../../api.ts";

const WAIT_MS = 60;
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

/** What could be typed at the caret, a moment after typing stopped. */
export function useCompletions(open: boolean, text: string, caret: number, presets: Presets): readonly Suggestion[] {
  const [suggestions, setSuggestions] = useState<readonly Suggestion[]>([]);
  useEffect(() => {
    if (!open) return undefined;
    const controller = new AbortController();
    const timer = window.setTimeout(() => {
      void completions(text, caret, (request) => seenValues(request, controller.signal), { presets }).then((next) => {
        if (!controller.signal.aborted) setSuggestions(next.slice(0, MOST));
      });
    }, WAIT_MS);
    return () => {
      window.clearTimeout(timer);
      controller.abort();
    };
  }, [open, text, caret, presets]);
  return suggestions;
}
