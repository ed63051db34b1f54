import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { FileInput, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import type { GrpcSchema } from "@headworks/capture-contract";
import { api, errorText } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatCount, formatDateTime, isolatedName } from "../../ui/format.ts";
import { Spinner } from "../../ui/states.tsx";
import styles from "./grpc-schemas.module.css";
import { LiveSection, Problem, SectionActions } from "./section.tsx";
import settings from "./settings.module.css";
import { readSchemaFiles } from "./schema-files.ts";

const schemasQuery = queryOptions({
  queryKey: ["grpc", "schemas"],
  queryFn: ({ signal }) => api.grpc.listGrpcSchemas({ signal }),
});

/** Schemas for decoding gRPC messages: list, upload of files, and server reflection. */
export function GrpcSchemasSection() {
  const schemas = useQuery(schemasQuery);
  return (
    <LiveSection id="grpc-schemas" title="gRPC schemas" query={schemas}>
      {(found) => (
        <>
          <p className={settings["quiet"]}>
            Messages are decoded when viewed, so a schema also applies to messages recorded before it was added. If
            several schemas define a method, the newest is used.
          </p>
          {found.length > 0 && (
            <ul className={styles["list"]} aria-label="Schemas">
              {found.map((schema) => (
                <SchemaItem key={schema.id} schema={schema} />
              ))}
            </ul>
          )}
          <AddFiles />
          <AskServer />
        </>
      )}
    </LiveSection>
  );
}

const SOURCES: Readonly<Record<GrpcSchema["source"], string>> = {
  proto: ".proto files",
  descriptor_set: "descriptor set",
  reflection: "server reflection",
};

function SchemaItem({ schema }: { readonly schema: GrpcSchema }) {
  const { id, name, source, files, services, messages, issues, created_at: createdAt } = schema;
  const remove = async (): Promise<void> => {
    const sure = await confirmAction({
      title: `Remove schema ${isolatedName(name)}?`,
      text: "Messages defined only by this schema are shown with field numbers.",
      action: "Remove",
      danger: true,
    });
    if (!sure) return;
    await attempt("Could not remove the schema", () => api.grpc.deleteGrpcSchema({ params: { id } }));
    await queryClient.invalidateQueries({ queryKey: ["grpc"] });
  };
  return (
    <li className={styles["schema"]}>
      <span className={styles["name"]}>{name}</span>
      <IconButton label={`Remove ${isolatedName(name)}`} icon={<Trash2 size={14} />} onClick={() => void remove()} />
      <span className={styles["about"]}>
        {SOURCES[source]}, {formatCount(files.length)} {files.length === 1 ? "file" : "files"}, {formatCount(messages)}{" "}
        {messages === 1 ? "message" : "messages"}, {formatDateTime(Date.parse(createdAt))}
      </span>
      {services.length > 0 && (
        <details className={styles["methods"]}>
          <summary>{services.map((service) => service.name).join(", ")}</summary>
          <ul>
            {services.flatMap(({ methods }) =>
              methods.map(({ path, request_type: request, response_type: response }) => (
                <li key={path}>
                  <code>{path}</code> {request} → {response}
                </li>
              )),
            )}
          </ul>
        </details>
      )}
      {issues.length > 0 && <p className={styles["issues"]}>{issues.join("; ")}</p>}
    </li>
  );
}

async function added({ name }: GrpcSchema): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: ["grpc"] });
  toast({ tone: "success", title: `Schema ${isolatedName(name)} added` });
}

function AddFiles() {
  const input = useRef<HTMLInputElement>(null);
  const add = useMutation({
    mutationFn: async (files: readonly File[]) => {
      const read = await readSchemaFiles(files);
      if (!read.ok) throw new Error(read.message);
      return await api.grpc.addGrpcSchema({ body: read.body });
    },
    onSuccess: added,
  });
  return (
    <div className={settings["part"]} role="group" aria-labelledby="grpc-files">
      <h3 id="grpc-files">From files</h3>
      <p className={settings["quiet"]}>
        .proto files including their imports, or one descriptor set from protoc or buf.
      </p>
      <SectionActions>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label="Schema files"
          onChange={(event) => {
            const files = [...(event.target.files ?? [])];
            event.target.value = "";
            if (files.length > 0) add.mutate(files);
          }}
        />
        <Button
          icon={add.isPending ? <Spinner label="Adding" /> : <FileInput size={14} />}
          disabled={add.isPending}
          onClick={() => input.current?.click()}
        >
          Add files…
        </Button>
      </SectionActions>
      {add.error !== null && <Problem>{errorText(add.error)}</Problem>}
    </div>
  );
}

function AskServer() {
  const [url, setUrl] = useState("");
  const reflect = useMutation({
    mutationFn: () => api.grpc.reflectGrpcSchema({ body: { url: url.trim() } }),
    onSuccess: added,
  });
  return (
    <form
      className={settings["part"]}
      aria-label="Schema from a server"
      onSubmit={(event) => {
        event.preventDefault();
        reflect.mutate();
      }}
    >
      <div className={settings["testLine"]}>
        <Field label="From a server with reflection" hint="Use http:// for a server without TLS">
          <TextInput
            mono
            maxLength={2048}
            placeholder="https://localhost:50051"
            value={url}
            onChange={(event) => setUrl(event.target.value)}
          />
        </Field>
        <Button
          type="submit"
          disabled={reflect.isPending || url.trim() === ""}
          icon={reflect.isPending ? <Spinner label="Loading" /> : undefined}
        >
          Load
        </Button>
      </div>
      {reflect.error !== null && <Problem>{errorText(reflect.error)}</Problem>}
    </form>
  );
}
