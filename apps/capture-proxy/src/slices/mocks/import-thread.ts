import { workerData } from "node:worker_threads";
import { serveRequests } from "@headworks/worker-host";
import { type DocumentImport, openDocument, type ReadDocument } from "./import-documents.ts";
import { ImportProblem } from "./imported-mocks.ts";

/** A chunk of the document, or its end. */
export type ImportStep = Uint8Array<ArrayBuffer> | "end";

/** The entries so far, or the document at its end. */
export type ImportReply =
  | { readonly entries: number }
  | { readonly document: ReadDocument }
  | { readonly problem: string };

const reader = openDocument(workerData as DocumentImport);

serveRequests((step: ImportStep) => ({ value: reply(step), transfer: [] }));

function reply(step: ImportStep): ImportReply {
  try {
    return step === "end" ? { document: reader.end() } : { entries: reader.write(step) };
  } catch (error) {
    if (error instanceof ImportProblem) return { problem: error.message };
    throw error;
  }
}
