import { useMutation } from "@tanstack/react-query";
import { Download, FileInput, Save, Undo2 } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { exportRules, exportSettings } from "../../transfer/export.ts";
import { queryClient } from "../../queries.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatDateTime } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { toast } from "../../ui/toast.tsx";
import { BundleDialog } from "./bundle-dialog.tsx";
import { SectionActions } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

/** Bounds of rules, and all rules as one file. */
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
      <h3 id="rules-as-a-file">As a file</h3>
      <p className={styles["quiet"]}>
        All mocks, rewrites, breakpoints, blocked hosts and the like, for another Weir or for a repository. Passwords
        are in neither file.
      </p>
      <SectionActions>
        <Button icon={<Download size={14} />} onClick={() => void exportRules()}>
          Export the rules
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
      attempt("The rules were not saved", async () => {
        const { saved_at: at } = await api.persistence.saveRules({ headers: { "x-weir-confirm": "true" } });
        toast({
          tone: "success",
          title: "The rules are saved",
          text: `As they were at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const load = useMutation({
    mutationFn: () =>
      attempt("The saved rules were not brought back", async () => {
        const { saved_at: at } = await api.persistence.loadRules({});
        if (at === null) {
          toast({ title: "No rules were saved yet", text: "Nothing has changed." });
          return;
        }
        await queryClient.invalidateQueries();
        toast({
          tone: "success",
          title: "The saved rules are back",
          text: `As they were at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const askToSave = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Save the rules as they are now?",
      text: "What was saved before is overwritten.",
      action: "Save",
    });
    if (sure) save.mutate();
  };
  const askToLoad = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Bring back the saved rules?",
      text: "Rules that were made or changed since are lost.",
      action: "Bring back",
      danger: true,
    });
    if (sure) load.mutate();
  };
  return (
    <div className={styles["part"]} role="group" aria-labelledby="rules-saved">
      <h3 id="rules-saved">A state to come back to</h3>
      <p className={styles["quiet"]}>Rules are always kept. Besides, one state of all of them can be put aside.</p>
      <SectionActions>
        <Button icon={<Save size={14} />} disabled={save.isPending} onClick={() => void askToSave()}>
          Save this state
        </Button>
        <Button icon={<Undo2 size={14} />} disabled={load.isPending} onClick={() => void askToLoad()}>
          Bring back the saved state
        </Button>
      </SectionActions>
    </div>
  );
}
