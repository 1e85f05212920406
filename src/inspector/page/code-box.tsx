import { useEffect, useRef, useState } from 'preact/hooks'
import type { CodeView } from './code.js'
import { messageFrom } from './model.js'

type Code = typeof import('./code.js')

export interface CodeBoxProps<Content, View> {
  readonly class?: string
  /** Name of the content, for messages: `the payload`. */
  readonly what: string
  /** Version of the content. A new version is read and replaces the old one. */
  readonly version?: string
  readonly read: () => Promise<Content>
  readonly show: (code: Code, into: HTMLElement, content: Content) => View
  readonly onView: (view: View | null) => void
}

/** A box for CodeMirror, which is loaded with the first box. Until then it shows a message. */
export function CodeBox<Content, View extends CodeView>(props: CodeBoxProps<Content, View>) {
  const { class: name = '', what, version, read, show, onView } = props
  const box = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<string | null>(`Reading ${what} …`)
  useEffect(() => {
    let view: View | undefined
    let isGone = false
    const open = async (): Promise<void> => {
      const [code, content] = await Promise.all([import('./code.js'), read()])
      if (isGone || !box.current) return
      // Shown first, since an editor takes the focus, and hidden elements cannot.
      box.current.hidden = false
      view = show(code, box.current, content)
      onView(view)
      setState(null)
    }
    open().catch((error: unknown) => setState(`Could not show ${what}: ${messageFrom(error)}`))
    return () => {
      isGone = true
      view?.destroy()
      onView(null)
    }
  }, [version])
  return (
    <>
      <div class={`code code-view ${name}`} ref={box} hidden={state !== null} />
      {state === null ? null : (
        <p class="quiet" role="status">
          {state}
        </p>
      )}
    </>
  )
}
