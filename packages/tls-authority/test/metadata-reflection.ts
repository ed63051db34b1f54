/**
 * For tests only. The independent parser's dependency injection requires the metadata API of an old decorators
 * proposal; this is the part it calls.
 */
const store = new WeakMap<object, Map<unknown, unknown>>();

function metadataOf(target: object): Map<unknown, unknown> {
  const known = store.get(target);
  if (known !== undefined) return known;
  const created = new Map<unknown, unknown>();
  store.set(target, created);
  return created;
}

function lookUp(key: unknown, target: object): unknown {
  for (let each: object | null = target; each !== null; each = Reflect.getPrototypeOf(each)) {
    const found = store.get(each);
    if (found?.has(key) === true) return found.get(key);
  }
  return undefined;
}

Object.assign(Reflect, {
  defineMetadata: (key: unknown, value: unknown, target: object) => void metadataOf(target).set(key, value),
  getMetadata: lookUp,
  getOwnMetadata: (key: unknown, target: object) => store.get(target)?.get(key),
  hasMetadata: (key: unknown, target: object) => lookUp(key, target) !== undefined,
  metadata: (key: unknown, value: unknown) => (target: object) => void metadataOf(target).set(key, value),
});
