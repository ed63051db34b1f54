import type { ConfigField } from "@headworks/capture-contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { Tag } from "../../ui/tag.tsx";
import { toast } from "../../ui/toast.tsx";
import { fieldErrors } from "./field-errors.ts";
import type { FieldErrors } from "./field-errors.ts";
import { Card } from "../../ui/page.tsx";
import { fromDraft, patchOf, settingControl, settingLabel, toDraft, valueText } from "./setting-model.ts";
import type { Draft, SettingControl, SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

type Drafts = Readonly<Record<string, Draft>>;
const NO_ERRORS: FieldErrors = { fields: {}, general: null };

/** The settings of one subject; saved together, so that what belongs together is accepted or refused together. */
export function SettingGroupCard({ group }: { readonly group: SettingGroup }) {
  const client = useQueryClient();
  const [drafts, setDrafts] = useState<Drafts>({});
  const [errors, setErrors] = useState<FieldErrors>(NO_ERRORS);
  const names = group.fields.map((field) => field.name);
  const save = useMutation({
    mutationFn: (changes: Readonly<Record<string, unknown>>) => api.config.updateConfig({ body: patchOf(changes) }),
    onSuccess: async (_, changes) => {
      await client.invalidateQueries({ queryKey: ["config"] });
      await client.invalidateQueries({ queryKey: ["capture"] });
      setDrafts((old) => Object.fromEntries(Object.entries(old).filter(([name]) => !(name in changes))));
      setErrors(NO_ERRORS);
      const later = group.fields.some((field) => field.name in changes && field.applies === "restart");
      toast({
        tone: "success",
        title: `${group.title} saved`,
        ...(later ? { text: "Part of it takes effect after a restart." } : {}),
      });
    },
    onError: (error) => setErrors(fieldErrors(error, names)),
  });
  const changed = group.fields.filter((field) => field.name in drafts);

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
    <Card title={group.title} id={group.id}>
      <form
        className={styles["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {group.fields.map((field) => (
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
    </Card>
  );
}

const SOURCES: Readonly<Record<ConfigField["source"], string>> = {
  default: "default",
  file: "from the file",
  environment: "from the environment",
  flag: "from the command line",
};

function SettingRow({
  field,
  draft,
  error,
  onEdit,
  onDiscard,
  onReset,
}: {
  readonly field: ConfigField;
  readonly draft: Draft | undefined;
  readonly error: string | undefined;
  readonly onEdit: (draft: Draft) => void;
  readonly onDiscard: () => void;
  readonly onReset: () => void;
}) {
  const control = settingControl(field);
  const isDefault = field.source === "default" || JSON.stringify(field.value) === JSON.stringify(field.default);
  const value = draft ?? toDraft(control, field.value);
  const label = settingLabel(field.name);
  return (
    <div className={styles["row"]} data-changed={draft !== undefined || undefined}>
      <div className={styles["control"]}>
        <Field
          label={label}
          // Some are described by nothing but their name.
          hint={field.description === label ? undefined : field.description}
          error={error}
          className={control.kind === "switch" ? styles["switchField"] : undefined}
        >
          <Control control={control} field={field} value={value} isEdited={draft !== undefined} onEdit={onEdit} />
        </Field>
      </div>
      <div className={styles["meta"]}>
        <code title={`Environment: ${field.environment}${field.flag === null ? "" : `, flag: ${field.flag}`}`}>
          {field.name}
        </code>
        <span className={styles["tags"]}>
          {field.source !== "default" && (
            <Tag tone={field.source === "file" ? "neutral" : "warning"}>{SOURCES[field.source]}</Tag>
          )}
          {field.applies === "restart" && !field.restart_pending && <Tag tone="neutral">after restart</Tag>}
          {field.applies === "next-cycle" && <Tag tone="neutral">next cycle</Tag>}
          {field.restart_pending && (
            <Tag
              tone="warning"
              title={`In force until then: ${control.kind === "secret" ? "the old one" : valueText(field.running)}`}
            >
              waits for restart
            </Tag>
          )}
          {draft !== undefined ? (
            <IconButton label={`Discard the change of ${label}`} icon={<RotateCcw size={13} />} onClick={onDiscard} />
          ) : (
            !isDefault &&
            field.source === "file" && (
              <IconButton
                label={`Reset to the default: ${control.kind === "secret" ? "none" : valueText(field.default)}`}
                icon={<RotateCcw size={13} />}
                onClick={onReset}
              />
            )
          )}
        </span>
      </div>
    </div>
  );
}

function Control({
  control,
  field,
  value,
  isEdited,
  onEdit,
}: {
  readonly control: SettingControl;
  readonly field: ConfigField;
  readonly value: Draft;
  readonly isEdited: boolean;
  readonly onEdit: (draft: Draft) => void;
}) {
  const text = typeof value === "string" ? value : "";
  switch (control.kind) {
    case "switch":
      return <Switch checked={value === true} onChange={onEdit} />;
    case "choice":
      return (
        <Select
          value={text}
          options={control.options.map((option) => ({ value: option, label: option }))}
          onChange={onEdit}
        />
      );
    case "list":
      return (
        <TextArea
          mono
          rows={Math.min(8, Math.max(2, text.split("\n").length + 1))}
          placeholder="One per line"
          spellCheck={false}
          value={text}
          onChange={(event) => onEdit(event.target.value)}
        />
      );
    case "secret":
      return (
        <TextInput
          type="password"
          autoComplete="new-password"
          placeholder={
            isEdited ? "Empty: removed when saved" : field.value === null ? "Not set" : "Set; type to replace it"
          }
          value={text}
          onChange={(event) => onEdit(event.target.value)}
        />
      );
    case "number":
      return (
        <TextInput
          inputMode="numeric"
          className={styles["number"]}
          placeholder={control.optional ? "No limit" : undefined}
          value={text}
          onChange={(event) => onEdit(event.target.value)}
        />
      );
    case "text":
      return (
        <TextInput
          mono
          placeholder={control.optional ? "Not set" : undefined}
          value={text}
          onChange={(event) => onEdit(event.target.value)}
        />
      );
  }
}
