import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { FileInput, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import type { GrpcSchema, NewGrpcSchema } from "@headworks/capture-contract";
import { api, errorText } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatCount, formatDateTime } from "../../ui/format.ts";
import { isolatedName } from "../../ui/isolated-name.ts";
import { Spinner } from "../../ui/states.tsx";
import { toast } from "../../ui/toast.tsx";
import styles from "./grpc-schemas.module.css";
import { LiveSection, Problem, SectionActions } from "./section.tsx";
import settings from "./settings.module.css";

/** The request that adds them may have 10 MiB, base64 included. */
const MAX_BYTES = 7 * 1024 * 1024;

/** So many bytes become characters at a time: arguments of a call have a limit. */
const CHUNK_BYTES = 8192;

const schemasQuery = queryOptions({
  queryKey: ["grpc", "schemas"],
  queryFn: ({ signal }) => api.grpc.listGrpcSchemas({ signal }),
});

/** The schemas that gRPC messages are decoded with: what there is, files to add, servers to ask. */
export function GrpcSchemasSection() {
  const schemas = useQuery(schemasQuery);
  return (
    <LiveSection id="grpc-schemas" title="gRPC schemas" query={schemas}>
      {(found) => (
        <>
          <p className={settings["quiet"]}>
            Messages are decoded when they are looked at, so a schema explains what was recorded before it came. Of
            several that know a method, the newest counts.
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
      title: `Remove the schema ${isolatedName(name)}?`,
      text: "Messages that only it explains are shown by their field numbers again.",
      action: "Remove",
      danger: true,
    });
    if (!sure) return;
    await attempt("The schema was not removed", () => api.grpc.deleteGrpcSchema({ params: { id } }));
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
  toast({ tone: "success", title: `The schema ${isolatedName(name)} is added` });
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
        .proto files together with those that they import, or one descriptor set of protoc or buf.
      </p>
      <SectionActions>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label="Files with the schema"
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
  const ask = useMutation({
    mutationFn: () => api.grpc.reflectGrpcSchema({ body: { url: url.trim() } }),
    onSuccess: added,
  });
  return (
    <form
      className={settings["part"]}
      aria-label="Schema from a server"
      onSubmit={(event) => {
        event.preventDefault();
        ask.mutate();
      }}
    >
      <div className={settings["testLine"]}>
        <Field label="From a server that offers reflection" hint="http:// for a server without TLS">
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
          disabled={ask.isPending || url.trim() === ""}
          icon={ask.isPending ? <Spinner label="Asking" /> : undefined}
        >
          Ask it
        </Button>
      </div>
      {ask.error !== null && <Problem>{errorText(ask.error)}</Problem>}
    </form>
  );
}

/** As much of a browser's file as is needed; in a folder that was chosen, `webkitRelativePath` begins with its name. */
export interface ChosenFile {
  readonly name: string;
  readonly size: number;
  readonly webkitRelativePath?: string;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** What to send for the files that somebody chose, or a sentence on what is wrong with them. */
type ReadSchema =
  | { readonly ok: true; readonly body: NewGrpcSchema }
  | { readonly ok: false; readonly message: string };

/** Reads .proto files, or one descriptor set. */
export async function readSchemaFiles(files: readonly ChosenFile[]): Promise<ReadSchema> {
  const protos = files.filter(({ name }) => name.endsWith(".proto"));
  const [only] = files;
  if (only === undefined) return { ok: false, message: "No file was chosen" };
  if (files.reduce((sum, { size }) => sum + size, 0) > MAX_BYTES) {
    return { ok: false, message: "The files are larger than 7 MiB together" };
  }
  if (protos.length > 0) {
    // In a folder others than .proto are no matter.
    const read = protos.map(async (file) => ({ name: importName(file), base64: await base64Of(file) }));
    return { ok: true, body: { files: await Promise.all(read) } };
  }
  if (files.length > 1) return { ok: false, message: "A descriptor set is added alone; other files end in .proto" };
  return { ok: true, body: { descriptor_set: await base64Of(only), name: only.name } };
}

/** The path inside the chosen folder, by which files import each other. */
function importName({ name, webkitRelativePath = "" }: ChosenFile): string {
  return webkitRelativePath === "" ? name : webkitRelativePath.slice(webkitRelativePath.indexOf("/") + 1);
}

async function base64Of(file: ChosenFile): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  }
  return btoa(text);
}
