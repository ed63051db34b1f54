import { useQuery } from "@tanstack/react-query";
import { type ComponentType, useEffect } from "react";
import { fieldsQuery } from "../../queries.ts";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { CertificateCard } from "./certificate-card.tsx";
import { GrpcSchemasSection } from "./grpc-schemas-section.tsx";
import { RulesSection } from "./rules-section.tsx";
import { SettingGroupCard } from "./setting-group.tsx";
import { groupSettings, type SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";
import { AutoSaveSection, LogsSection, MirrorSection, SocksSection, StorageCard } from "./status-sections.tsx";
import { UpstreamSection } from "./upstream-section.tsx";

interface Section {
  readonly id: string;
  readonly title: string;
  readonly Component: ComponentType;
}

const LEADING_SECTIONS: readonly Section[] = [
  { id: "certificate", title: "Certificate", Component: CertificateCard },
  { id: "storage", title: "Storage", Component: StorageCard },
];

/** Custom sections of setting groups, by group id. */
const GROUP_SECTIONS: Readonly<Record<string, ComponentType<{ readonly group: SettingGroup }>>> = {
  "auto-save": AutoSaveSection,
  logs: LogsSection,
  mirror: MirrorSection,
  rules: RulesSection,
  socks: SocksSection,
  "upstream-proxy": UpstreamSection,
};

const TRAILING_SECTIONS: readonly Section[] = [
  { id: "grpc-schemas", title: "gRPC schemas", Component: GrpcSchemasSection },
];

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
