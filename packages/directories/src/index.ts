export { makeDirectory, makeDirectorySync } from "./make-directory.ts";
export { realPlace } from "./real-place.ts";
