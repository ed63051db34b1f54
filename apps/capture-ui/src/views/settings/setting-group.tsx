import type { ConfigField } from "@headworks/capture-contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../../api.ts";
import { keepDraft, keptDraft } from "../../rules/stored-draft.ts";
import { Button } from "../../ui/button.tsx";
import { toast } from "../../ui/toast.tsx";
import { fieldErrors, type FieldErrors } from "../../rules/field-errors.ts";
import { Card } from "../../ui/page.tsx";
import { SettingRow } from "./setting-row.tsx";
import { fromDraft, patchOf, settingControl, toDraft } from "./setting-model.ts";
import type { Draft, SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

type Drafts = Readonly<Record<string, Draft>>;
const NO_DRAFTS: Drafts = {};
const NO_ERRORS: FieldErrors = { fields: {}, general: null };

/** A group of settings as a section. */
export function SettingGroupCard({ group }: { readonly group: SettingGroup }) {
  return (
    <Card title={group.title} id={group.id}>
      <ConfigForm group={group} />
    </Card>
  );
}

/** A group of settings, saved with `PATCH /config`. */
export function ConfigForm({ group }: { readonly group: SettingGroup }) {
  const client = useQueryClient();
  const save = async (changes: Readonly<Record<string, unknown>>): Promise<void> => {
    await api.config.updateConfig({ body: patchOf(changes) });
    await client.invalidateQueries({ queryKey: ["config"] });
    await client.invalidateQueries({ queryKey: ["capture"] });
  };
  return <SettingForm title={group.title} fields={group.fields} save={save} />;
}

/**
 * Settings that are validated and saved together. `save` receives the changed values by name, and rejects with the
 * service's validation errors.
 */
function SettingForm({
  title,
  fields,
  save: saveChanges,
}: {
  readonly title: string;
  readonly fields: readonly ConfigField[];
  readonly save: (changes: Readonly<Record<string, unknown>>) => Promise<void>;
}) {
  const name = `settings ${title}`;
  const [drafts, setDrafts] = useState<Drafts>(() => keptDraft<Drafts>(name)?.draft ?? NO_DRAFTS);
  useEffect(
    () => keepDraft(name, Object.keys(drafts).length > 0 ? { base: NO_DRAFTS, draft: drafts } : null),
    [name, drafts],
  );
  const [errors, setErrors] = useState<FieldErrors>(NO_ERRORS);
  const names = fields.map((field) => field.name);
  const save = useMutation({
    mutationFn: saveChanges,
    onSuccess: (_, changes) => {
      setDrafts((old) => Object.fromEntries(Object.entries(old).filter(([name]) => !(name in changes))));
      setErrors(NO_ERRORS);
      const needsRestart = fields.some((field) => field.name in changes && field.applies === "restart");
      toast({
        tone: "success",
        title: `${title} saved`,
        ...(needsRestart ? { text: "Part of it takes effect after a restart." } : {}),
      });
    },
    onError: (error) => setErrors(fieldErrors(error, names)),
  });
  const changed = fields.filter((field) => field.name in drafts);

  const submit = (): void => {
    const changes: Record<string, unknown> = {};
    const problems: Record<string, string> = {};
    for (const field of changed) {
      const parsed = fromDraft(settingControl(field), drafts[field.name] ?? "");
      if (parsed.ok) changes[field.name] = parsed.value;
      else problems[field.name] = parsed.message;
    }
    setErrors({ fields: problems, general: null });
    if (Object.keys(problems).length === 0) save.mutate(changes);
  };
  const edit = (field: ConfigField, draft: Draft): void => {
    const control = settingControl(field);
    setDrafts(({ [field.name]: _, ...rest }) =>
      control.kind !== "secret" && draft === toDraft(control, field.value) ? rest : { ...rest, [field.name]: draft },
    );
    setErrors(({ fields: { [field.name]: _, ...fields }, general }) => ({ fields, general }));
  };

  return (
    <form
      className={styles["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {fields.map((field) => (
        <SettingRow
          key={field.name}
          field={field}
          draft={drafts[field.name]}
          error={errors.fields[field.name]}
          onEdit={(draft) => edit(field, draft)}
          onDiscard={() => setDrafts(({ [field.name]: _, ...rest }) => rest)}
          onReset={() => save.mutate({ [field.name]: field.default })}
        />
      ))}
      {errors.general !== null && (
        <p className={styles["error"]} role="alert">
          {errors.general}
        </p>
      )}
      {changed.length > 0 && (
        <div className={styles["saveBar"]}>
          <span>{changed.length === 1 ? "1 change" : `${changed.length} changes`}</span>
          <Button
            onClick={() => {
              setDrafts({});
              setErrors(NO_ERRORS);
            }}
          >
            Discard
          </Button>
          <Button type="submit" variant="primary" disabled={save.isPending}>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}
