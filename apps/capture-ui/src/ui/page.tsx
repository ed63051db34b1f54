import type { ReactNode } from "react";
import styles from "./page.module.css";

/** The frame of a screen: heading, actions, content of readable width. */
export function Page({
  title,
  description,
  actions,
  children,
}: {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["page"]} tabIndex={0} role="region" aria-label={title}>
      <div className={styles["inner"]}>
        <header className={styles["head"]}>
          <div className={styles["heading"]}>
            <h1>{title}</h1>
            {description !== undefined && <p>{description}</p>}
          </div>
          {actions !== undefined && <div className={styles["actions"]}>{actions}</div>}
        </header>
        {children}
      </div>
    </div>
  );
}

/** A framed section with a heading. */
export function Card({
  title,
  aside,
  children,
  id,
}: {
  readonly title: ReactNode;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  readonly id?: string;
}) {
  return (
    <section className={styles["card"]} id={id}>
      <div className={styles["cardHead"]}>
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
