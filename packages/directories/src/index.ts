export { makeDirectory, makeDirectorySync } from "./make-directory.ts";
