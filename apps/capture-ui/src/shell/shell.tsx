import { Suspense, useEffect } from "react";
import { ConfirmHost } from "../ui/dialog.tsx";
import { EmptyState, Spinner } from "../ui/states.tsx";
import { ToastHost } from "../ui/toast.tsx";
import { Link } from "./link.tsx";
import { navigate, usePlace } from "./router.ts";
import { ROUTES, routeOf } from "./routes.tsx";
import styles from "./shell.module.css";

/** The frame around every screen. */
export function Shell() {
  const { path } = usePlace();
  const route = routeOf(path);
  useEffect(() => {
    if (path === "/") navigate("/traffic", { replace: true });
  }, [path]);
  return (
    <div className={styles["shell"]}>
      <header style={{ gridColumn: "1 / -1" }} />
      <nav className={styles["rail"]} aria-label="Screens">
        {ROUTES.map(({ path: href, label, icon: Icon }) => (
          <Link
            key={href}
            href={href}
            className={styles["railLink"]}
            aria-current={route?.path === href ? "page" : undefined}
          >
            <Icon size={18} />
            {label}
          </Link>
        ))}
      </nav>
      <main className={styles["main"]}>
        <Suspense fallback={<EmptyState icon={<Spinner />} title="" />}>
          {route === undefined ? <EmptyState title="There is no such page" /> : <route.view />}
        </Suspense>
      </main>
      <ToastHost />
      <ConfirmHost />
    </div>
  );
}
