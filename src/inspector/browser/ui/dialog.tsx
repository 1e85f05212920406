import { type Child, useEffect, useRef } from 'hono/jsx/dom'
import { Icon } from '../../view/icon.js'

export interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  readonly onClose: () => void
  /** Asked before the user closes it. Default: always. */
  readonly mayClose?: () => boolean
  readonly children: Child
}

/** A modal dialog. The browser keeps the focus inside, closes it on Escape, and returns the focus to where it was. */
export function Dialog({ title, isWide = false, onClose, mayClose = () => true, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    if (!dialog) return undefined
    const previous = document.activeElement
    dialog.showModal()
    dialog.querySelector<HTMLElement>('[data-first]')?.focus()
    return () => {
      dialog.close()
      if (previous instanceof HTMLElement && previous.isConnected) previous.focus()
    }
  }, [])
  const close = (): void => {
    if (mayClose()) onClose()
  }
  const onClick = (event: MouseEvent): void => {
    // The backdrop is the dialog itself; what is inside is in its form or its box.
    if (event.target === element.current) close()
  }
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby="dialog-title"
      onClose={() => {
        // Removing a dialog closes it, and says so when another may be open.
        if (element.current?.isConnected) onClose()
      }}
      onCancel={(event: Event) => {
        if (!mayClose()) event.preventDefault()
      }}
      onClick={onClick}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="button button-quiet" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
