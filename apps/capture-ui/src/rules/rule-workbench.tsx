import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import type { ReactNode } from "react";
import { useNarrow } from "../shell/use-narrow.ts";
import { SplitPane } from "../ui/split-pane.tsx";
import { EmptyState, ErrorState, Spinner } from "../ui/states.tsx";

/** A list of rules with an editor beside it; on narrow screens only the editor. */
export function RuleWorkbench({
  list,
  editor,
  share: initialShare,
}: {
  readonly list: ReactNode;
  readonly editor: ReactNode;
  /** Initial share of the width for the list. */
  readonly share: number;
}) {
  const narrow = useNarrow();
  const [share, setShare] = useState(initialShare);
  if (narrow && editor !== null) return editor;
  return (
    <SplitPane
      label="Resize list"
      direction="row"
      share={share}
      onShareChange={setShare}
      minPx={320}
      first={list}
      second={editor}
    />
  );
}

/** Placeholder of a list that is loading or failed to load. `noun` names its items: `mocks`. */
export function ListWaiting({ noun, query }: { readonly noun: string; readonly query: UseQueryResult }) {
  return (
    <>
      {query.error !== null && (
        <ErrorState
          title={`Could not load the ${noun}`}
          error={query.error}
          onRetry={() => {
            void query.refetch();
          }}
        />
      )}
      {query.isPending && <EmptyState icon={<Spinner />} title={`Loading the ${noun}`} />}
    </>
  );
}
