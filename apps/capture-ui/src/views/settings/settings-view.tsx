import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { fieldsQuery } from "../../queries.ts";
import { GROUP_SECTIONS, LEADING_SECTIONS, TRAILING_SECTIONS } from "./sections.tsx";
import { SettingGroupCard } from "./setting-group.tsx";
import { groupSettings } from "./setting-model.ts";
import styles from "./settings.module.css";

/** All settings, built from the service's description, and other setup sections. */
export function SettingsView() {
  const fields = useQuery(fieldsQuery);
  const groups = groupSettings(fields.data ?? []);
  useAnchor(fields.data !== undefined);
  const pending = (fields.data ?? []).filter((field) => field.restart_pending);
  return (
    <Page
      title="Settings"
      description="Changes are written to the configuration file immediately. Settings that need a restart are marked."
    >
      {pending.length > 0 && (
        <p className={styles["restart"]} role="status">
          {pending.length === 1 ? "1 change pending" : `${pending.length} changes pending`} until Weir restarts:{" "}
          {pending.map((field) => field.name).join(", ")}.
        </p>
      )}
      <div className={styles["layout"]}>
        <nav className={styles["contents"]} aria-label="Settings groups">
          {[...LEADING_SECTIONS, ...groups, ...TRAILING_SECTIONS].map((section) => (
            <a key={section.id} href={`#${section.id}`}>
              {section.title}
            </a>
          ))}
        </nav>
        <div className={styles["groups"]}>
          {LEADING_SECTIONS.map(({ id, Component }) => (
            <Component key={id} />
          ))}
          {fields.error !== null && (
            <ErrorState
              title="Could not load the settings"
              error={fields.error}
              onRetry={() => void fields.refetch()}
            />
          )}
          {fields.isPending && <EmptyState title="Loading settings" icon={<Spinner />} />}
          {groups.map((group) => {
            const Component = GROUP_SECTIONS[group.id] ?? SettingGroupCard;
            return <Component key={group.id} group={group} />;
          })}
          {TRAILING_SECTIONS.map(({ id, Component }) => (
            <Component key={id} />
          ))}
        </div>
      </div>
    </Page>
  );
}

/** Scrolls to the section named in the URL, and keeps it in place while sections above load, until the user scrolls. */
function useAnchor(isReady: boolean): void {
  useEffect(() => {
    if (!isReady || location.hash === "") return undefined;
    const target = document.querySelector(`#${CSS.escape(location.hash.slice(1))}`);
    if (target?.parentElement == null) return undefined;
    const observer = new ResizeObserver(() => target.scrollIntoView());
    observer.observe(target.parentElement);
    const moves = new AbortController();
    const stop = (): void => {
      observer.disconnect();
      moves.abort();
    };
    for (const event of ["wheel", "pointerdown", "keydown"]) {
      addEventListener(event, stop, { passive: true, signal: moves.signal });
    }
    return stop;
  }, [isReady]);
}
