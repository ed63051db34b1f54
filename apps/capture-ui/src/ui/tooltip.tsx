import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactElement, ReactNode } from "react";
import styles from "./tooltip.module.css";

/** Wraps the app, so that moving between tooltips shows the next one immediately. */
export function TooltipProvider({ children }: { readonly children: ReactNode }) {
  return <Base.Provider delay={500}>{children}</Base.Provider>;
}

/** Tooltip on hover or focus. The child must be one element that accepts a ref. */
export function Tooltip({
  text,
  keys,
  side = "bottom",
  children,
}: {
  readonly text: ReactNode;
  readonly keys?: string;
  readonly side?: "top" | "bottom" | "left" | "right";
  readonly children: ReactElement;
}) {
  return (
    <Base.Root
      onOpenChange={(_open, { reason, allowPropagation }) => {
        // Esc also closes the surrounding dialog.
        if (reason === "escape-key") allowPropagation();
      }}
    >
      <Base.Trigger render={children} />
      <Base.Portal>
        <Base.Positioner side={side} sideOffset={6} className={styles["positioner"]}>
          <Base.Popup className={styles["popup"]}>
            <span>{text}</span>
            {keys !== undefined && <span className={styles["keys"]}>{keys}</span>}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
