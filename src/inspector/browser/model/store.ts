import { useLayoutEffect, useState } from 'hono/jsx/dom'

/** A value that components follow. */
export interface Store<T> {
  get(): T
  set(value: T): void
  /** Calls `listener` after each change, until the function that it returns is called. */
  subscribe(listener: () => void): () => void
}

export function createStore<T>(initial: T): Store<T> {
  const listeners = new Set<() => void>()
  let current = initial
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return
      current = value
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** The value of a store in a component, which renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, setVersion] = useState(0)
  const value = store.get()
  useLayoutEffect(() => {
    const render = (): void => setVersion((version) => version + 1)
    // It may have changed between the rendering and now.
    if (!Object.is(store.get(), value)) render()
    return store.subscribe(render)
  }, [store])
  return value
}
