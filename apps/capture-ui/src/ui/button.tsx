import type { ComponentPropsWithRef, ReactNode } from "react";
import styles from "./button.module.css";
import { classNames } from "./class-names.ts";
import { Tooltip } from "./tooltip.tsx";

export interface ButtonProps extends ComponentPropsWithRef<"button"> {
  /** `primary` at most once in a view; `danger` for what cannot be undone; `ghost` inside toolbars. */
  readonly variant?: "default" | "primary" | "danger" | "ghost" | undefined;
  readonly size?: "medium" | "large" | undefined;
  readonly icon?: ReactNode | undefined;
  /** Shows a pressed toggle, for the eye and for screen readers. */
  readonly pressed?: boolean | undefined;
}

/** A button with text, and an icon before it if given. */
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
  /** What it does; read aloud and shown as a tooltip. */
  readonly label: string;
  readonly icon: ReactNode;
  /** Keys that do the same, shown in the tooltip. */
  readonly keys?: string | undefined;
}

/** A button that is only an icon; its label is a tooltip and its accessible name. */
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
