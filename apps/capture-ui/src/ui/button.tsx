import type { ComponentPropsWithRef, ReactNode } from "react";
import styles from "./button.module.css";
import { classNames } from "./class-names.ts";
import { Tooltip } from "./tooltip.tsx";

export interface ButtonProps extends ComponentPropsWithRef<"button"> {
  /** `primary`: at most one per view; `danger`: irreversible actions; `ghost`: toolbars. */
  readonly variant?: "default" | "primary" | "danger" | "ghost" | undefined;
  readonly size?: "medium" | "large" | undefined;
  readonly icon?: ReactNode | undefined;
  /** Toggle state, also exposed to screen readers. */
  readonly pressed?: boolean | undefined;
}

export function Button({
  variant = "default",
  size = "medium",
  icon,
  pressed,
  className,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      {...rest}
      className={classNames(
        styles["button"],
        variant !== "default" && styles[variant],
        size === "large" && styles["large"],
        pressed && styles["on"],
        className,
      )}
    >
      {icon}
      {children}
    </button>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, "children" | "icon"> {
  /** Accessible name and tooltip. */
  readonly label: string;
  readonly icon: ReactNode;
  /** Keyboard shortcut shown in the tooltip. */
  readonly keys?: string | undefined;
}

/** An icon-only button with a tooltip. */
export function IconButton({ label, icon, keys, className, variant = "ghost", ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} {...(keys === undefined ? {} : { keys })}>
      <Button
        {...rest}
        variant={variant}
        icon={icon}
        aria-label={label}
        className={classNames(styles["icon"], className)}
      />
    </Tooltip>
  );
}
