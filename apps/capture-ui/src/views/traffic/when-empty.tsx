import { ApiFailure } from "../../api.ts";
import { later } from "../../shell/later.tsx";
import { Button } from "../../ui/button.tsx";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import type { TrafficList } from "./list/traffic-list.ts";

const FirstRun = later(async () => (await import("../first-run/first-run-view.tsx")).FirstRunView);

/** What stands in place of rows: a failure, a filter that shows nothing, or the way to the first traffic. */
export function WhenEmpty({
  list,
  filtered,
  onShowAll,
}: {
  readonly list: TrafficList;
  readonly filtered: boolean;
  readonly onShowAll: () => void;
}) {
  if (list.error instanceof ApiFailure && list.error.status === 400) {
    return (
      <EmptyState
        title="The filter cannot be understood"
        actions={<Button onClick={onShowAll}>Show everything</Button>}
      >
        The line below the filter says where it goes wrong.
      </EmptyState>
    );
  }
  if (list.error !== undefined) {
    return <ErrorState title="The traffic cannot be shown" error={list.error} onRetry={() => list.resync()} />;
  }
  if (!list.loaded) return null;
  if (filtered) {
    return (
      <EmptyState title="Nothing matches the filter" actions={<Button onClick={onShowAll}>Show everything</Button>}>
        New traffic that matches appears here by itself.
      </EmptyState>
    );
  }
  return <FirstRun.View compact />;
}
