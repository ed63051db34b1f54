export { storageTroubleOf } from "./storage-trouble.ts";
export type { StorageTrouble } from "./storage-trouble.ts";
