/** Returns a function that loads a value when it is first called. Later calls get the same one; a failure is tried again. */
export function createLazy<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loaded: Promise<Value> | undefined
  return () => {
    if (loaded) return loaded
    const loading = load()
    loaded = loading
    loading.catch(() => (loaded = undefined))
    return loading
  }
}
