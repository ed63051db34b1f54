import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@headworks/directories";

/**
 * Writes a file whole or not at all: who reads it sees the old text or the new one, also after a power cut. Makes the
 * folder. Rejects with the system's error, and leaves no half of it.
 */
export async function writeStatement(directory: string, name: string, text: string): Promise<void> {
  await makeDirectory(directory, 0o777);
  const draft = join(directory, `.${name}.${randomUUID()}.tmp`);
  try {
    const file = await open(draft, "wx", 0o640);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(directory, name));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(directory);
}

/** So that the new name outlives a power cut; Windows has no such thing. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(directory, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
