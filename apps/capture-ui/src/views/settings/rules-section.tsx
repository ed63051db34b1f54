import { useMutation } from "@tanstack/react-query";
import { Download, FileInput, Save, Undo2 } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { exportRules, exportSettings } from "../../transfer/export.ts";
import { queryClient } from "../../queries.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { BundleDialog } from "./bundle-dialog.tsx";
import { SectionActions } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

/** Rule limits, export, import, and the snapshot of rules. */
export function RulesSection({ group }: { readonly group: SettingGroup }) {
  return (
    <Card id={group.id} title={group.title}>
      <div className={styles["section"]}>
        <RuleFiles />
        <SavedRules />
        <ConfigForm group={group} />
      </div>
    </Card>
  );
}

function RuleFiles() {
  const [importing, setImporting] = useState(false);
  return (
    <div className={styles["part"]} role="group" aria-labelledby="rules-as-a-file">
      <h3 id="rules-as-a-file">Export and import</h3>
      <p className={styles["quiet"]}>
        Mocks, rewrites, breakpoints, blocked hosts and other rules, to use in another Weir or keep in a repository.
        Exports contain no passwords.
      </p>
      <SectionActions>
        <Button icon={<Download size={14} />} onClick={() => void exportRules()}>
          Export rules
        </Button>
        <Button icon={<Download size={14} />} onClick={() => void exportSettings()}>
          Export rules and settings
        </Button>
        <Button icon={<FileInput size={14} />} onClick={() => setImporting(true)}>
          Import…
        </Button>
      </SectionActions>
      {importing && <BundleDialog onClose={() => setImporting(false)} />}
    </div>
  );
}

function SavedRules() {
  const save = useMutation({
    mutationFn: () =>
      attempt("Could not save the rules snapshot", async () => {
        const { saved_at: at } = await api.persistence.saveRules({ headers: { "x-weir-confirm": "true" } });
        toast({
          tone: "success",
          title: "Rules snapshot saved",
          text: `Taken at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const load = useMutation({
    mutationFn: () =>
      attempt("Could not restore the rules snapshot", async () => {
        const { saved_at: at } = await api.persistence.loadRules({});
        if (at === null) {
          toast({ title: "No rules snapshot", text: "Nothing was changed." });
          return;
        }
        await queryClient.invalidateQueries();
        toast({
          tone: "success",
          title: "Rules snapshot restored",
          text: `Taken at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const askToSave = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Save a rules snapshot?",
      text: "The previous snapshot is overwritten.",
      action: "Save",
    });
    if (sure) save.mutate();
  };
  const askToLoad = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Restore the rules snapshot?",
      text: "Changes made to rules since then are lost.",
      action: "Restore",
      danger: true,
    });
    if (sure) load.mutate();
  };
  return (
    <div className={styles["part"]} role="group" aria-labelledby="rules-saved">
      <h3 id="rules-saved">Rules snapshot</h3>
      <p className={styles["quiet"]}>Save one snapshot of all rules to restore later.</p>
      <SectionActions>
        <Button icon={<Save size={14} />} disabled={save.isPending} onClick={() => void askToSave()}>
          Save snapshot
        </Button>
        <Button icon={<Undo2 size={14} />} disabled={load.isPending} onClick={() => void askToLoad()}>
          Restore snapshot
        </Button>
      </SectionActions>
    </div>
  );
}
