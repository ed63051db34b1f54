import type { OperationInput } from "@headworks/contract-kit";
import { useState } from "react";
import type { api } from "../../api.ts";
import { operations, operationUrl } from "../../api.ts";
import { sendFile } from "../../transfer/send-file.ts";

/** What an import answers. */
export type ImportResponse = Awaited<ReturnType<typeof api.mocks.importMockDocument>>;

type ImportQuery = NonNullable<OperationInput<typeof operations.mocks.importMockDocument>["query"]>;

/** Sends a document for import, and knows how much of it has left; undefined while nothing is sent. */
export function useDocumentSending(): {
  readonly sentBytes: number | undefined;
  readonly send: (file: Blob, query: ImportQuery) => Promise<ImportResponse>;
  readonly stop: () => void;
} {
  const [sentBytes, setSentBytes] = useState<number>();
  const [controller, setController] = useState<AbortController>();
  return {
    sentBytes,
    send: async (file, query) => {
      const current = new AbortController();
      setController(current);
      setSentBytes(0);
      try {
        const url = operationUrl(operations.mocks.importMockDocument, { query });
        return (await sendFile(url, file, setSentBytes, current.signal, "application/octet-stream")) as ImportResponse;
      } finally {
        setSentBytes(undefined);
      }
    },
    stop: () => controller?.abort(),
  };
}
