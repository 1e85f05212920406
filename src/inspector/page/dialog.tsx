import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { dialog } from './model.js'
import { Icon } from './parts.js'

export interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  /** Asked before the user closes it. Default: always. */
  readonly mayClose?: () => boolean
  readonly children: ComponentChildren
}

/** A modal dialog. The browser keeps the focus inside, closes it on Escape, and returns the focus to where it was. */
export function Dialog({ title, isWide = false, mayClose = () => true, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const { current } = element
    current?.showModal()
    const first = current?.querySelector<HTMLElement>('[data-first]') ?? current?.querySelector('h2')
    first?.focus()
    return () => current?.close()
  }, [])
  const close = (): void => {
    if (mayClose()) dialog.value = null
  }
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby="dialog-title"
      onClose={() => {
        // Removing a dialog closes it too, when another may be open already.
        if (element.current?.isConnected) dialog.value = null
      }}
      onCancel={(event) => {
        if (!mayClose()) event.preventDefault()
      }}
      onClick={(event) => {
        // The backdrop is the dialog itself; what is inside is in its box.
        if (event.target === element.current) close()
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id="dialog-title" tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="button button-quiet" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
