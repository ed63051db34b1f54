import type { MirrorChange, MirrorStatus, mirrorOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { MirrorQueue } from "./mirror-queue.ts";

export interface MirrorParts {
  readonly settings: SliceHost["settings"];
  readonly queue: Pick<MirrorQueue, "status">;
  readonly defaultDir: string;
  readonly onChange: () => void;
}

export function createMirrorOperations(parts: MirrorParts): Handlers<typeof mirrorOperations> {
  const { settings, defaultDir, onChange } = parts;
  const change = (fields: MirrorChange): void => {
    const before = settings.configured.mirror;
    inBody(() => settings.patch({ mirror: fields }));
    if (settings.configured.mirror !== before) onChange();
  };
  return {
    getMirror: () => ({ status: 200, body: mirrorStatus(parts) }),
    toggleMirror: ({ body }) => {
      const enabled = body?.enabled ?? !settings.running.mirror.enabled;
      change({ enabled });
      return { status: 200, body: { enabled, message: enabled ? "Mirroring enabled" : "Mirroring disabled" } };
    },
    updateMirror: ({ body }) => {
      const { enabled, output_dir: outputDir, host_filter: hostFilter, save_request_bodies: savesRequests } = body;
      change({
        ...(enabled !== undefined && { enabled }),
        // Sending back the status changes nothing: the default directory moves with the data directory.
        ...(outputDir !== undefined && { output_dir: outputDir === defaultDir ? null : outputDir }),
        ...(hostFilter !== undefined && { host_filter: hostFilter }),
        ...(savesRequests !== undefined && { save_request_bodies: savesRequests }),
      });
      return { status: 200, body: mirrorStatus(parts) };
    },
  };
}

function mirrorStatus({ settings, queue, defaultDir }: MirrorParts): MirrorStatus {
  const { enabled, output_dir: outputDir, host_filter: hostFilter, save_request_bodies } = settings.running.mirror;
  return {
    enabled,
    output_dir: outputDir ?? defaultDir,
    host_filter: hostFilter === null ? null : [...hostFilter],
    save_request_bodies,
    ...queue.status(),
  };
}

/** The settings report errors below `body/mirror/`; the body of this operation is that section. */
function inBody(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error;
    throw validationError(
      error.details.map(({ path, message }) => ({ path: path.replace("body/mirror/", "body/"), message })),
    );
  }
}
