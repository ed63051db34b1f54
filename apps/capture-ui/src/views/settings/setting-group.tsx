import type { ConfigField } from "@headworks/capture-contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { api } from "../../api.ts";
import { fieldErrors, type FieldErrors } from "../../rules/field-errors.ts";
import { keepDraft, keptDraft } from "../../rules/stored-draft.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { Card } from "../../ui/page.tsx";
import { Tag } from "../../ui/tag.tsx";
import { toast } from "../../ui/toast.tsx";
import {
  type Draft,
  fromDraft,
  patchOf,
  settingControl,
  type SettingControl,
  type SettingGroup,
  settingLabel,
  toDraft,
  valueText,
} from "./setting-model.ts";
import styles from "./settings.module.css";

type Drafts = Readonly<Record<string, Draft>>;
const NO_DRAFTS: Drafts = {};
const NO_ERRORS: FieldErrors = { fields: {}, general: null };

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

/** Settings that are saved together. `save` rejects with the service's validation errors. */
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

const SOURCES: Readonly<Record<ConfigField["source"], string>> = {
  default: "default",
  file: "from file",
  environment: "from environment",
  flag: "from command line",
};

/** One setting: control, source of its value, and when a change takes effect. */
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
          // Omits a description that equals the label.
          hint={field.description === undefined || field.description === label ? undefined : marked(field.description)}
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
          {field.overridden_by !== undefined && (
            <Tag
              tone="warning"
              title={`Saved in the file, but at each start the value ${SOURCES[field.overridden_by]} takes precedence`}
            >
              overridden
            </Tag>
          )}
          {field.applies === "restart" && !field.restart_pending && field.overridden_by === undefined && (
            <Tag tone="neutral">after restart</Tag>
          )}
          {field.applies === "next-cycle" && <Tag tone="neutral">next interval</Tag>}
          {field.restart_pending && (
            <Tag
              tone="warning"
              title={`Active until then: ${control.kind === "secret" ? "previous value" : valueText(field.running)}`}
            >
              restart required
            </Tag>
          )}
          {draft !== undefined ? (
            <IconButton label={`Discard change to ${label}`} icon={<RotateCcw size={13} />} onClick={onDiscard} />
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
            isEdited ? "Empty: removed on save" : field.value === null ? "Not set" : "Set; type to replace it"
          }
          value={text}
          onChange={(event) => onEdit(event.target.value)}
        />
      );
    case "rotation":
      return <RotationControl text={text} onEdit={onEdit} />;
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

const ROTATIONS = [
  { value: "never", label: "never" },
  { value: "hourly", label: "hourly" },
  { value: "daily", label: "daily" },
  { value: "size", label: "by size" },
];

/** A description from the contract; backticks mark code. */
function marked(text: string): ReactNode {
  return text.split("`").map((part, index) =>
    // The parts do not move, so the index identifies them.
    index % 2 === 0 ? part : <code key={`${index}`}>{part}</code>,
  );
}

function RotationControl({ text, onEdit }: { readonly text: string; readonly onEdit: (draft: Draft) => void }) {
  const [mode = "", size = ""] = text.split(":");
  return (
    <div className={styles["rotation"]}>
      <Select
        value={mode}
        options={ROTATIONS}
        onChange={(next) => onEdit(next === "size" ? `size:${size === "" ? "10" : size}` : next)}
      />
      {mode === "size" && (
        <Field label="MiB per file">
          <TextInput
            inputMode="numeric"
            className={styles["number"]}
            value={size}
            onChange={(event) => onEdit(`size:${event.target.value}`)}
          />
        </Field>
      )}
    </div>
  );
}
