import { useEffect, useRef, useState } from 'hono/jsx/dom'
import type { DeliveryDetail, SendRequest, Sent } from '../../api.js'
import { messageFrom, postJson } from '../data/request.js'
import type { Editor } from '../editor/editor.js'
import { layOut } from '../../../json/text.js'
import { go, viewStore } from '../model/navigation.js'
import { Dialog } from '../ui/dialog.js'
import { notify } from '../ui/toast.js'
import { closeDialog } from './open-dialog.js'

/** Edits the JSON of a delivery and sends it as a new one: through intake, or to one target. */
export function EditDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const { n, routes, event, json } = detail
  const editor = useRef<Editor | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const send = async (submitted: Event): Promise<void> => {
    submitted.preventDefault()
    if (!editor.current || !form.current) return
    setBusy(true)
    try {
      const request = requestOf(n, editor.current.text(), new FormData(form.current))
      const sent = await postJson<Sent>('send', request)
      notify(`Sent as #${sent.n}`)
      closeDialog()
      const view = viewStore.get()
      go({ page: 'delivery', n: sent.n, query: 'query' in view ? view.query : {} })
    } catch (error) {
      setProblem(messageFrom(error))
      setBusy(false)
    }
  }
  const text = readable(json ?? '')
  const mayClose = (): boolean =>
    (editor.current?.text() ?? text) === text || confirm('Close without sending? Your edit is lost.')
  return (
    <Dialog title={`Edit #${n} and send`} isWide onClose={closeDialog} mayClose={mayClose}>
      <form class="edit" ref={form} onSubmit={(submitted: Event) => void send(submitted)}>
        <Fields event={event} routes={routes} />
        <EditorBox text={text} onReady={(ready) => (editor.current = ready)} />
        {problem === null ? null : (
          <p class="error-text" role="alert">
            {problem}
          </p>
        )}
        <div class="edit-end">
          <p class="quiet">
            Signed again with the current secret, given a new delivery id, and marked as edited.
          </p>
          <button type="submit" class="button button-main" disabled={isBusy}>
            Send
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** What is sent besides the payload. */
function Fields({ event, routes }: Pick<DeliveryDetail, 'event' | 'routes'>) {
  return (
    <div class="edit-fields">
      <label>
        Event
        <input name="event" value={event} required maxlength={100} autocomplete="off" spellcheck={false} />
      </label>
      <label>
        Send to
        <select name="target">
          <option value="">every matching target</option>
          {routes.map(({ id, name }) => (
            <option value={id}>only {name}</option>
          ))}
        </select>
      </label>
    </div>
  )
}

interface EditorBoxProps {
  readonly text: string
  readonly onReady: (editor: Editor) => void
}

/** The editor, which is loaded when it is first opened. */
function EditorBox({ text, onReady }: EditorBoxProps) {
  const box = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<'loading' | 'ready' | 'failed'>('loading')
  useEffect(() => {
    let created: Editor | undefined
    let isGone = false
    const open = async (): Promise<void> => {
      const { createEditor } = await import('../editor/editor.js')
      if (isGone || !box.current) return
      created = createEditor(box.current, text)
      onReady(created)
      setState('ready')
    }
    open().catch(() => setState('failed'))
    return () => {
      isGone = true
      created?.destroy()
    }
  }, [])
  return (
    <>
      <div class="editor" ref={box} />
      {state === 'ready' ? null : (
        <p class="quiet" role="status">
          {state === 'loading'
            ? 'Loading the editor …'
            : 'The editor could not be loaded. Load the page again.'}
        </p>
      )}
    </>
  )
}

/** @throws SyntaxError that says where the text is no JSON */
function requestOf(from: number, body: string, form: FormData): SendRequest {
  JSON.parse(body)
  const [event, target] = [form.get('event'), form.get('target')]
  if (typeof event !== 'string' || typeof target !== 'string')
    throw new TypeError('unreachable: no files here')
  return { from, event, body, ...(target !== '' && { target }) }
}

/** Compact JSON is laid out to be read; text that has lines already stays as its sender wrote it. */
function readable(json: string): string {
  return json.trim().includes('\n') ? json : layOut(json)
}
