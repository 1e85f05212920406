import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, Header, SendRequest, Sent } from '../api.js'
import { isMadeHeader } from '../made-headers.js'
import { bodyOf, postJson, whyNot } from './client.js'
import type { Editor, Problem } from './code.js'
import { Dialog } from './dialog.js'
import { dialog, go, messageFrom, notify, query } from './model.js'
import { Visible } from './parts.js'
import { payloadOf } from './payload.js'
import { pretty } from './pretty.js'

/** Edits a delivery and sends it as a new one: through intake, or to one target. */
export function EditDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const form = useRef<HTMLFormElement>(null)
  const editor = useRef<Editor | null>(null)
  const original = useRef('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    if (!editor.current || !form.current || whyNot.value !== null || isBusy) return
    setBusy(true)
    try {
      await send(detail.n, form.current, editor.current.text())
    } catch (error) {
      // The line of the problem says what is wrong with the JSON, and where.
      if (!(error instanceof SyntaxError)) setFailure(messageFrom(error))
      setBusy(false)
    }
  }
  const isChanged = (): boolean => editor.current !== null && editor.current.text() !== original.current
  const mayClose = (): boolean => !isChanged() || confirm('Close without sending? Your edit is lost.')
  const why = whyNot.value ?? (problem ? `The payload is not JSON: ${placeOf(problem)}` : null)
  return (
    <Dialog title={`Edit #${detail.n} and send`} isWide mayClose={mayClose}>
      <form
        class="edit"
        ref={form}
        onInput={() => setFailure(null)}
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <Fields detail={detail} />
        <EditorBox
          detail={detail}
          onReady={(ready, text) => {
            editor.current = ready
            original.current = text
          }}
          onProblem={setProblem}
        />
        <div class="edit-end">
          <p id="edit-why" class={why === null && failure === null ? 'quiet' : 'error-text'} role="status">
            {why ??
              failure ??
              'Signed again with the current secret, with a new delivery id, and marked as edited.'}
          </p>
          <button
            type="submit"
            class="button button-main"
            aria-disabled={why === null ? undefined : 'true'}
            aria-describedby="edit-why"
          >
            Send
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Sends the edit and shows what was made. @throws SyntaxError for what is no JSON; RequestError; Error for a wrong header */
async function send(from: number, form: HTMLFormElement, body: string): Promise<void> {
  JSON.parse(body)
  const fields = new Map(
    [...new FormData(form)].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
  const target = fields.get('target')
  const request: SendRequest = {
    from,
    event: fields.get('event') ?? '',
    headers: parseHeaders(fields.get('headers') ?? ''),
    body,
    ...(target && { target }),
  }
  const opened = dialog.value
  const sent = await postJson<Sent>('send', request)
  notify(`Sent as #${sent.n}`)
  // Meanwhile the user may have closed it, and gone elsewhere.
  if (dialog.value !== opened) return
  dialog.value = null
  go({ page: 'delivery', n: sent.n, query: query.value })
}

function placeOf({ message, line, column }: Problem): string {
  return `line ${line}, column ${column}: ${message}`
}

/** What is sent besides the payload. */
function Fields({ detail: { event, routes, headers } }: { readonly detail: DeliveryDetail }) {
  const own = headers.filter(([name]) => !isMadeHeader(name))
  return (
    <>
      <div class="edit-fields">
        <label>
          Event
          <input
            name="event"
            defaultValue={event}
            required
            maxLength={100}
            autoComplete="off"
            spellcheck={false}
          />
        </label>
        <label>
          Send to
          <select name="target">
            <option value="">every matching target</option>
            {routes.map(({ id, name }) => (
              <option value={id}>
                only <Visible text={name} />
              </option>
            ))}
          </select>
        </label>
      </div>
      <details class="edit-headers">
        <summary>
          Headers <span class="section-count">{own.length}</span>
        </summary>
        <label class="sr-only" for="edit-headers">
          Headers, one a line
        </label>
        <textarea
          id="edit-headers"
          name="headers"
          rows={Math.min(8, own.length + 1)}
          spellcheck={false}
          autoComplete="off"
          defaultValue={own.map(([name, value]) => `${name}: ${value}`).join('\n')}
        />
        <p class="quiet">One a line. Event, delivery id, signature and length are made for the copy.</p>
      </details>
    </>
  )
}

/** @throws Error that names the line */
function parseHeaders(text: string): Header[] {
  return text.split('\n').flatMap((line, i): Header[] => {
    if (line.trim() === '') return []
    const [, name = '', value = ''] = /^([^:\s]+)[ \t]*:(.*)$/.exec(line) ?? []
    if (name === '') throw new Error(`Line ${i + 1} of the headers is not “Name: value”.`)
    if (isMadeHeader(name)) throw new Error(`${name} is made for each delivery and cannot be set.`)
    return [[name, value.trim()]]
  })
}

interface EditorBoxProps {
  readonly detail: DeliveryDetail
  readonly onReady: (editor: Editor, text: string) => void
  readonly onProblem: (problem: Problem | null) => void
}

function EditorBox({ detail: { n, bodyKind }, onReady, onProblem }: EditorBoxProps) {
  const box = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<string | null>('Loading the editor …')
  useEffect(() => {
    let created: Editor | undefined
    let isGone = false
    const open = async (): Promise<void> => {
      const [{ edit }, bytes] = await Promise.all([import('./code.js'), bodyOf(n)])
      if (isGone || !box.current) return
      const text = readable(payloadOf(bytes, bodyKind))
      created = edit(box.current, text, onProblem)
      onReady(created, text)
      setState(null)
    }
    open().catch((error: unknown) => setState(`The editor could not be opened: ${messageFrom(error)}`))
    return () => {
      isGone = true
      created?.destroy()
    }
  }, [])
  return (
    <div class="code-view editor">
      <div class="code editor-box" ref={box} />
      {state === null ? null : (
        <p class="quiet" role="status">
          {state}
        </p>
      )}
    </div>
  )
}

/** Compact JSON is laid out to be read; text that has lines already stays as its sender wrote it. */
function readable(json: string): string {
  return json.trim().includes('\n') ? json : pretty(json).text
}
