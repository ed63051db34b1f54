import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { operations, operationUrl } from "../../api.ts";
import { draftOfBytes } from "../../rules/body-draft.ts";
import { usePrefill } from "../../rules/use-prefill.ts";
import { mockFromEntry, type MockDraft } from "./mock-draft.ts";

/** A new mock from the entry that the address names (`?from=<id>`), with its answer's body decoded; null without one. */
export function useMockPrefill(): { readonly key: string; readonly draft: MockDraft } | null {
  const entry = usePrefill();
  const id = entry?.id ?? "";
  const body = useQuery({
    queryKey: ["entry", id, "decoded-answer"],
    queryFn: async ({ signal }) => {
      const url = operationUrl(operations.traffic.getTrafficBody, {
        params: { id, side: "response" },
        query: { decoded: "true" },
      });
      const response = await fetch(url, { signal });
      return draftOfBytes(new Uint8Array(response.ok ? await response.arrayBuffer() : new ArrayBuffer(0)));
    },
    enabled: entry !== null,
    staleTime: Infinity,
  });
  const response = body.data;
  return useMemo(
    () => (entry === null || response === undefined ? null : { key: entry.id, draft: mockFromEntry(entry, response) }),
    [entry, response],
  );
}
