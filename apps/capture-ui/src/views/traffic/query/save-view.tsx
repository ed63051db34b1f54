import { BUILT_IN_PRESETS } from "@headworks/query-language";
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { Dialog } from "../../../ui/dialog.tsx";
import { Field, TextInput } from "../../../ui/field.tsx";
import { toast } from "../../../ui/toast.tsx";
import { keepView, viewNameProblem } from "./saved-views.ts";

export function SaveViewDialog({ q, onClose }: { readonly q: string; readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [tried, setTried] = useState(false);
  const problem = viewNameProblem(name, Object.keys(BUILT_IN_PRESETS));
  const save = () => {
    setTried(true);
    if (problem !== undefined) return;
    keepView({ name, q });
    toast({ tone: "success", title: `Saved as @${name}` });
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={save}
      title="Save view"
      description={
        <>
          Saves <code>{q}</code> in this browser. Reuse it from the history menu, or type{" "}
          <code>@{name === "" ? "name" : name}</code> in a filter.
        </>
      }
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Save view
          </Button>
        </>
      }
    >
      <Field label="Name" error={tried ? problem : undefined}>
        <TextInput mono value={name} onChange={(event) => setName(event.target.value)} placeholder="slow-checkout" />
      </Field>
    </Dialog>
  );
}
