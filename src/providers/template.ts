/** A repository with an issue and a pull request, as GitHub's REST API shows them, for made-up deliveries. */
export interface Scene {
  /** When the event happens: UTC, to the second. */
  readonly at: string
  /** The last fields of nearly every payload. */
  readonly context: SceneContext
  issue(state?: { readonly closed?: boolean; readonly comments?: number }): object
  /** A comment of the sender on the issue. */
  comment(id: number, body: string): object
  pull(state?: { readonly closed?: boolean }): ScenePull
}

/** The fields that templates read. */
export interface SceneContext {
  readonly repository: {
    readonly id: number
    readonly full_name: string
    readonly url: string
    readonly html_url: string
    readonly created_at: string
    readonly owner: object
  }
  readonly sender: { readonly login: string }
}

interface ScenePull {
  readonly number: number
  readonly url: string
  readonly html_url: string
  readonly head: { readonly sha: string }
}

/** The payload of a made-up delivery. */
export type Template = (scene: Scene) => object

/** By `event` or `event.action`. The first action of an event is the usual one. */
export type Templates = Readonly<Record<string, Template>>

/** Made-up hashes of commits and a tree. */
export const BEFORE = 'b1946ac92492d2347c6235b4d2611184b1946ac9'
export const AFTER = '591785b794601e212b260e25925636fd591785b7'
export const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
