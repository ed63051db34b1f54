import type { MockRule } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { jsonLines } from "../../rules/message-text.ts";
import shared from "../../rules/rule-parts.module.css";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { toast } from "../../ui/toast.tsx";
import styles from "./mocks.module.css";

/** What the mock was before, how that differs from now, and the way back. */
export function VersionsTab({ rule }: { readonly rule: MockRule }) {
  const versions = useQuery({
    queryKey: ["mocks", "versions", rule.id],
    queryFn: ({ signal }) => api.mocks.listMockVersions({ params: { id: rule.id }, signal }),
  });
  const [shown, setShown] = useState<number | null>(null);
  const goBack = async (version: number): Promise<void> => {
    const done = await attempt("The version was not brought back", () =>
      api.mocks.rollbackMock({ params: { id: rule.id }, body: { version } }),
    );
    if (done) toast({ tone: "success", title: `Version ${version} holds again` });
    await queryClient.invalidateQueries({ queryKey: ["mocks"] });
  };
  if (versions.error !== null) return <ErrorState title="The versions cannot be loaded" error={versions.error} />;
  if (versions.isPending) return <EmptyState icon={<Spinner />} title="" />;
  if (versions.data.length === 0) {
    return (
      <EmptyState title="There is one version">Each change of condition or answers keeps the one before.</EmptyState>
    );
  }
  const now = jsonLines({ condition: rule.condition, response_config: rule.response_config });
  return (
    <div className={styles["panel"]}>
      {versions.data.map((version) => (
        <div key={version.version}>
          <div className={styles["versionLine"]}>
            <b>Version {version.version}</b>
            <span className={shared["quiet"]}>until {formatDateTime(Date.parse(version.saved_at))}</span>
            {version.comment !== null && <span>{version.comment}</span>}
            <span className={styles["grow"]} />
            <Button
              pressed={shown === version.version}
              onClick={() => setShown(shown === version.version ? null : version.version)}
            >
              Compare with now
            </Button>
            <Button onClick={() => void goBack(version.version)}>Bring back</Button>
          </div>
          {shown === version.version && (
            <DiffView
              label={`Version ${version.version} compared with now`}
              left={jsonLines({ condition: version.condition, response_config: version.response_config })}
              right={now}
            />
          )}
        </div>
      ))}
    </div>
  );
}
