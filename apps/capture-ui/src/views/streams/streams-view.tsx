import { Radio } from "lucide-react";
import { useAction } from "../../shell/actions.ts";
import { setParams, useLocation } from "../../shell/router.ts";
import { useNarrow } from "../../ui/split-pane.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { GrpcCalls } from "./grpc-calls.tsx";
import { KIND_CHOICES, StreamList } from "./stream-list.tsx";
import type { KindChoice } from "./stream-list.tsx";
import { StreamPane } from "./stream-pane.tsx";
import styles from "./streams.module.css";

/** Streams, their messages and assembled content. */
export function StreamsView() {
  const { params } = useLocation();
  const narrow = useNarrow();
  const id = params.get("id");
  const frame = Number(params.get("frame") ?? "");
  const param = params.get("kind");
  const kind: KindChoice = KIND_CHOICES.find((each) => each === param) ?? "all";
  const close = (): void => setParams({ id: null, frame: null });
  useAction("close", id === null ? undefined : close);
  const calls = kind === "grpc" ? <GrpcCalls onShow={(next) => setParams({ id: next })} /> : undefined;
  const list = (
    <StreamList
      instead={narrow ? calls : undefined}
      kind={kind}
      chosenId={id}
      onKind={(next) => setParams({ kind: next === "all" ? null : next }, { replace: true })}
      onShow={(next) => setParams({ id: next, frame: null }, { replace: id !== null })}
    />
  );
  const pane =
    id === null ? (
      (calls ?? (
        <EmptyState icon={<Radio size={28} />} title="Select a stream">
          Its messages are shown live with direction, time and size.
        </EmptyState>
      ))
    ) : (
      <StreamPane
        key={id}
        id={id}
        frame={Number.isSafeInteger(frame) && frame > 0 ? frame : null}
        onFrame={(ordinal) => setParams({ frame: ordinal === null ? null : String(ordinal) }, { replace: true })}
        onBack={narrow ? close : undefined}
      />
    );
  if (narrow) return <div className={styles["narrow"]}>{id === null ? list : pane}</div>;
  return (
    <div className={styles["view"]}>
      {list}
      <div className={styles["right"]}>{pane}</div>
    </div>
  );
}
