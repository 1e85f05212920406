import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, ForwardRequest, Sent } from '../api.js'
import { postJson, whyNot } from './client.js'
import { command } from './command.js'
import { closeDialog, closing, dialog, formValues, messageFrom, notify } from './model.js'
import { Button, Icon, Visible } from './parts.js'

export interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  /** Called before the user closes the dialog. Only the first rendering counts. Default: always true. */
  readonly mayClose?: () => boolean
  readonly children: ComponentChildren
}

/** A modal dialog. The browser keeps the focus inside, and returns it afterwards. */
export function Dialog({ title, isWide = false, mayClose = () => true, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  // Closed before it is removed from the document, since a removed dialog does not return the focus.
  useLayoutEffect(() => {
    const { current } = element
    current?.showModal()
    const first = current?.querySelector<HTMLElement>('[data-first]') ?? current?.querySelector('h2')
    first?.focus()
    closing.isAllowed = mayClose
    return () => current?.close()
  }, [])
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby="dialog-title"
      onClose={() => {
        // Removal closes the dialog too, when another may already be open.
        if (element.current?.isConnected) dialog.value = null
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing) return
        event.preventDefault()
        closeDialog()
      }}
      onCancel={(event) => {
        // Handles other ways than the key. Chromium lets it be prevented only once until the next click or key.
        if (!mayClose()) event.preventDefault()
      }}
      onClick={(event) => {
        // The backdrop is the dialog element itself; the content is in its box.
        if (event.target === element.current) closeDialog()
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id="dialog-title" tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="button button-quiet" aria-label="Close" onClick={closeDialog}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}

interface DialogFormProps {
  readonly class: string
  readonly form?: RefObject<HTMLFormElement | null>
  /** Words of the button. */
  readonly action: string
  /** Reason why the form cannot be submitted now. */
  readonly why: string | null
  /** Text next to the button, while nothing is wrong. */
  readonly hint: ComponentChildren
  /** True if text and button are in one line. Default: false. */
  readonly isEndInLine?: boolean
  /**
   * Does what the form asks. `isOpen()` is false once the user has closed the dialog, and may have opened another one.
   * @throws Error whose message is for the user
   */
  readonly submit: (fields: URLSearchParams, isOpen: () => boolean) => Promise<void>
  readonly children: ComponentChildren
}

/** Form of a dialog. It is submitted once at a time, and shows why that failed until a field changes. */
export function DialogForm({
  class: name,
  form,
  action,
  why,
  hint,
  isEndInLine = false,
  submit,
  children,
}: DialogFormProps) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submitOnce = async (fields: URLSearchParams): Promise<void> => {
    if (why !== null || isBusy) return
    setBusy(true)
    const opened = dialog.value
    try {
      await submit(fields, () => dialog.value === opened)
    } catch (error) {
      setFailure(messageFrom(error))
    }
    setBusy(false)
  }
  const trouble = why ?? failure
  const end = (
    <>
      <p id="form-why" class={trouble === null ? 'quiet' : 'error-text'} role="status">
        {trouble === null ? hint : <Visible text={trouble} />}
      </p>
      <button
        type="submit"
        class="button button-main"
        aria-disabled={why === null ? undefined : 'true'}
        aria-describedby="form-why"
      >
        {action}
      </button>
    </>
  )
  return (
    <form
      class={name}
      {...(form && { ref: form })}
      onInput={() => setFailure(null)}
      onSubmit={(event) => {
        event.preventDefault()
        void submitOnce(formValues(event.currentTarget))
      }}
    >
      {children}
      {isEndInLine ? <div class="edit-end">{end}</div> : end}
    </form>
  )
}

/** Dialog to forward a delivery again, to all matching targets or to one. */
export function ForwardDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const { n, routes, again } = detail
  const [isBusy, setBusy] = useState(false)
  const title = `Forward #${n} again`
  const [only, ...others] = routes
  if (!only) return <NowhereDialog title={title} detail={detail} />
  const forward = async (request: ForwardRequest, where: string): Promise<void> => {
    setBusy(true)
    const opened = dialog.value
    try {
      await postJson<Sent>(`deliveries/${n}/forward`, request)
      notify(`Forwarding #${n} again to ${where}`)
      // Compared, since the user may have closed it and opened another one meanwhile.
      if (dialog.value === opened) dialog.value = null
    } catch (error) {
      setBusy(false)
      notify(messageFrom(error), true)
    }
  }
  const reason = isBusy ? 'It is being forwarded.' : whyNot.value
  const isOne = others.length === 0
  return (
    <Dialog title={title}>
      <p class="quiet">{again}</p>
      <div class="choices">
        <Button
          class="button button-main"
          isFirst
          reason={reason}
          onClick={() => void forward({}, isOne ? only.name : 'all targets')}
        >
          {isOne ? 'Forward again' : `To all ${routes.length} targets`}
        </Button>
        {isOne
          ? null
          : routes.map(({ id, name }) => (
              <Button reason={reason} onClick={() => void forward({ targets: [id] }, name)}>
                Only to <Visible text={name} />
              </Button>
            ))}
      </div>
      {whyNot.value === null ? null : (
        <p class="error-text" role="status">
          {whyNot.value}
        </p>
      )}
    </Dialog>
  )
}

interface NowhereProps {
  readonly title: string
  readonly detail: DeliveryDetail
}

/** Dialog that explains why a delivery goes to no target, with advice. */
function NowhereDialog({ title, detail: { ignored, source } }: NowhereProps) {
  const match = source === undefined ? '*' : `${source}/*`
  return (
    <Dialog title={title}>
      {ignored === undefined ? (
        <>
          <p>
            No route matches this delivery, so there is nowhere to forward it. Add a route, then forward it
            again.
          </p>
          <div class="choices">
            <Button
              class="button button-main"
              isFirst
              reason={whyNot.value}
              onClick={() => {
                dialog.value = { kind: 'route' }
              }}
            >
              Add a route…
            </Button>
          </div>
          <p class="quiet">Or stop relay, and start it again with</p>
          <pre class="command">{command(`serve --forward '${match}=http://localhost:3000/webhook'`)}</pre>
        </>
      ) : (
        <p>
          relay does not forward this delivery, which is <Visible text={ignored} />.
        </p>
      )}
    </Dialog>
  )
}

/** Keys by the place in which they work, with their effects. */
const KEYS = {
  Deliveries: [
    ['j ↓', 'next (older)'],
    ['k ↑', 'previous (newer)'],
    ['Enter', 'open it'],
    ['/', 'search the payloads'],
    ['r', 'forward it again'],
    ['e', 'edit and send it'],
    ['Esc', 'back to the list'],
  ],
  'In a payload': [
    ['Enter', 'fold and unfold a line'],
    ['Ctrl F', 'find'],
    ['Ctrl Alt [', 'fold all'],
    ['Ctrl Alt ]', 'unfold all'],
  ],
  Everywhere: [
    ['t', 'trigger a delivery'],
    ['?', 'these keys'],
  ],
} as const

export function KeysDialog() {
  return (
    <Dialog title="Keys">
      {Object.entries(KEYS).map(([where, keys]) => (
        <>
          <h3>{where}</h3>
          <dl class="keys">
            {keys.map(([names, what]) => (
              <div>
                <dt>
                  {names.split(' ').map((name) => (
                    <kbd>{name}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </>
      ))}
    </Dialog>
  )
}
