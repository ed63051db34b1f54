/** The part of WebAssembly's API that is used here; TypeScript declares it with the browser's types only. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
}
