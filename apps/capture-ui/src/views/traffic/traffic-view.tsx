import { EmptyState } from "../../ui/states.tsx";

/** The list of captured traffic. */
export function TrafficView() {
  return <EmptyState title="No traffic yet" />;
}
