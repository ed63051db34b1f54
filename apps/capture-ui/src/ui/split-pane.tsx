import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState, useSyncExternalStore } from "react";
import styles from "./split-pane.module.css";

/**
 * Two panes with a draggable separator. `share` is the first pane's part, 0 to 1, held by the caller. Without a second
 * pane the first fills the area and keeps its state when the second appears.
 */
export function SplitPane({
  first,
  second,
  direction,
  share,
  onShareChange,
  label,
  minPx = 240,
}: {
  readonly first: ReactNode;
  readonly second: ReactNode;
  readonly direction: "row" | "column";
  readonly share: number;
  readonly onShareChange: (share: number) => void;
  readonly label: string;
  readonly minPx?: number;
}) {
  const root = useRef<HTMLDivElement>(null);
  const [dragging, setDragging] = useState(false);
  const row = direction === "row";

  const limit = (value: number): number => {
    const box = root.current?.getBoundingClientRect();
    const size = box === undefined ? 1000 : row ? box.width : box.height;
    const edge = Math.min(0.45, minPx / Math.max(1, size));
    return Math.min(1 - edge, Math.max(edge, value));
  };
  const onPointerMove = (event: PointerEvent) => {
    const box = root.current?.getBoundingClientRect();
    if (!dragging || box === undefined) return;
    onShareChange(limit(row ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -0.02, ArrowUp: -0.02, ArrowRight: 0.02, ArrowDown: 0.02 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    onShareChange(limit(share + step));
  };
  const shown = second !== null && second !== undefined && second !== false;
  const tracks = shown ? `minmax(0, ${share}fr) 1px minmax(0, ${1 - share}fr)` : "minmax(0, 1fr)";
  const across = "minmax(0, 1fr)";
  return (
    <div
      ref={root}
      className={styles["split"]}
      style={
        row
          ? { gridTemplateColumns: tracks, gridTemplateRows: across }
          : { gridTemplateRows: tracks, gridTemplateColumns: across }
      }
    >
      <div className={styles["pane"]}>{first}</div>
      {shown && (
        <div
          role="separator"
          tabIndex={0}
          aria-label={label}
          aria-orientation={row ? "vertical" : "horizontal"}
          aria-valuenow={Math.round(share * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
          data-dragging={dragging || undefined}
          className={styles["grip"]}
          onKeyDown={onKeyDown}
          onPointerDown={(event) => {
            event.preventDefault();
            event.currentTarget.setPointerCapture(event.pointerId);
            setDragging(true);
          }}
          onPointerMove={onPointerMove}
          onPointerUp={() => setDragging(false)}
          onPointerCancel={() => setDragging(false)}
          onDoubleClick={() => onShareChange(0.5)}
        />
      )}
      {shown && <div className={styles["pane"]}>{second}</div>}
    </div>
  );
}

const QUERY = typeof matchMedia === "undefined" ? undefined : matchMedia("(max-width: 700px)");

/** Whether the window is as narrow as a phone. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      QUERY?.addEventListener("change", watcher);
      return () => QUERY?.removeEventListener("change", watcher);
    },
    () => QUERY?.matches ?? false,
  );
}
