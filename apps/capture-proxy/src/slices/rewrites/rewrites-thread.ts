import { readJson } from "@headworks/json";
import { serveRequests } from "@headworks/worker-host";
import { readTextBody, writeTextBody } from "#rules/text-body.ts";
import { compileTextEdit } from "./text-edits.ts";
import type { EditedText, TextAction } from "./text-edits.ts";
import type { EditedBytes, TextJob } from "./text-thread.ts";

/** Compiled actions by their JSON text; cleared when full. */
const compiled = new Map<string, (text: string) => EditedText>();
const MAX_COMPILED = 200;

function editFor(action: string): (text: string) => EditedText {
  let edit = compiled.get(action);
  if (edit === undefined) {
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    edit = compileTextEdit(readJson(action) as unknown as TextAction);
    compiled.set(action, edit);
  }
  return edit;
}

function edited({ action, bytes, contentType }: TextJob): EditedBytes {
  const body = readTextBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), contentType);
  if (body === undefined) return { problem: "the body is not text" };
  const result = editFor(action)(body.text);
  if ("problem" in result) return result;
  const written = writeTextBody(result.text, body);
  return { bytes: new Uint8Array(written.bytes), newCharset: written.newCharset, words: result.words };
}

serveRequests((job: TextJob) => {
  const value = edited(job);
  return { value, transfer: "bytes" in value ? [value.bytes.buffer] : [] };
});
