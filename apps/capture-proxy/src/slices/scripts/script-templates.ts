import type { ScriptTemplate } from "@headworks/capture-contract";

/** Scripts to begin with. */
export const SCRIPT_TEMPLATES: readonly ScriptTemplate[] = [];
