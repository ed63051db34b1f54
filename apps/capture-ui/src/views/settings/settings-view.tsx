import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { ErrorState, Spinner, EmptyState } from "../../ui/states.tsx";
import { CertificateCard } from "./certificate-card.tsx";
import { Page } from "../../ui/page.tsx";
import { SettingGroupCard } from "./setting-group.tsx";
import { groupSettings, isEffective } from "./setting-model.ts";
import styles from "./settings.module.css";
import { StorageCard } from "./storage-card.tsx";

const fieldsKey = ["config", "fields"] as const;

/** Every setting, made from what the service says about itself, and the certificate and storage beside them. */
export function SettingsView() {
  const fields = useQuery({ queryKey: fieldsKey, queryFn: ({ signal }) => api.config.describeConfig({ signal }) });
  const groups = groupSettings((fields.data ?? []).filter(isEffective));
  const pending = (fields.data ?? []).filter((field) => field.restart_pending);
  return (
    <Page
      title="Settings"
      description="Changes are written to the configuration file at once. What needs a restart says so."
    >
      {pending.length > 0 && (
        <p className={styles["restart"]} role="status">
          {pending.length === 1 ? "One change waits" : `${pending.length} changes wait`} for a restart of Weir:{" "}
          {pending.map((field) => field.name).join(", ")}.
        </p>
      )}
      <div className={styles["layout"]}>
        <nav className={styles["contents"]} aria-label="Groups of settings">
          {[{ id: "certificate", title: "Certificate" }, { id: "storage", title: "Storage" }, ...groups].map(
            (group) => (
              <a key={group.id} href={`#${group.id}`}>
                {group.title}
              </a>
            ),
          )}
        </nav>
        <div className={styles["groups"]}>
          <CertificateCard />
          <StorageCard />
          {fields.error !== null && (
            <ErrorState
              title="The settings cannot be loaded"
              error={fields.error}
              onRetry={() => void fields.refetch()}
            />
          )}
          {fields.isPending && <EmptyState title="Loading the settings" icon={<Spinner />} />}
          {groups.map((group) => (
            <SettingGroupCard key={group.id} group={group} />
          ))}
        </div>
      </div>
    </Page>
  );
}
