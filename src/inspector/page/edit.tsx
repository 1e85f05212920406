import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, Header, SendRequest, Sent } from '../api.js'
import { isMadeHeader } from '../made-headers.js'
import { postJson, whyNot } from './client.js'
import { CodeBox } from './code-box.js'
import type { Editor, Problem } from './code.js'
import { Dialog } from './dialogs.js'
import { dialog, formValues, go, messageFrom, notify, query } from './model.js'
import { Visible } from './parts.js'
import { payloadOf } from './payload.js'
import { compact, pretty } from './pretty.js'

const SIGNED = 'Signed again with the current secret, with a new delivery id, and marked as edited.'
const NOT_SIGNED = 'Not signed, since its source has no secret; with a new delivery id, and marked as edited.'

/** Dialog to edit a delivery and send it as a new one: through intake, or to one target. */
export function EditDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const form = useRef<HTMLFormElement>(null)
  const editor = useRef<Editor | null>(null)
  /** Values before the first change: the payload as received and as shown, and the other fields. */
  const original = useRef({ payload: '', text: '', fields: '' })
  const [problem, setProblem] = useState<Problem | null>(null)
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    if (!editor.current || !form.current || whyNot.value !== null || isBusy) return
    setBusy(true)
    try {
      await send(detail, form.current, payloadToSend(editor.current.text(), original.current))
    } catch (error) {
      setFailure(messageFrom(error))
      setBusy(false)
    }
  }
  const formText = (): string => (form.current ? formValues(form.current).toString() : '')
  useLayoutEffect(() => void (original.current.fields = formText()), [])
  const mayClose = (): boolean => {
    const { text, fields } = original.current
    const isEdited = formText() !== fields || (editor.current !== null && editor.current.text() !== text)
    return !isEdited || confirm('Close without sending? Your edit is lost.')
  }
  const syntax =
    problem && `The payload is not JSON: line ${problem.line}, column ${problem.column}: ${problem.message}`
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
        <CodeBox
          class="editor"
          what="the payload"
          read={async () => (original.current.payload = await payloadOf(detail))}
          show={({ edit }, into, payload) => edit(into, readable(payload), setProblem)}
          onView={(opened) => {
            editor.current = opened
            original.current.text = opened?.text() ?? ''
          }}
        />
        <End why={whyNot.value ?? syntax} failure={failure} outcome={detail.unproved ? NOT_SIGNED : SIGNED} />
      </form>
    </Dialog>
  )
}

interface EndProps {
  /** Reason why it cannot be sent now. */
  readonly why: string | null
  /** Reason why it was not sent. */
  readonly failure: string | null
  /** Sentence about what is sent. */
  readonly outcome: string
}

function End({ why, failure, outcome }: EndProps) {
  const trouble = why ?? failure
  return (
    <div class="edit-end">
      <p id="edit-why" class={trouble === null ? 'quiet' : 'error-text'} role="status">
        <Visible text={trouble ?? outcome} />
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
  )
}

/** Sends the edit and shows the new delivery. @throws RequestError; Error for a malformed header */
async function send(
  { n: from, event, made }: DeliveryDetail,
  form: HTMLFormElement,
  body: string,
): Promise<void> {
  const fields = formValues(form)
  const request: SendRequest = {
    from,
    event: fields.get('event') ?? event,
    headers: parseHeaders(fields.get('headers') ?? '', made),
    body,
    target: fields.get('target') || undefined,
  }
  const opened = dialog.value
  const sent = await postJson<Sent>('send', request)
  notify(`Sent as #${sent.n}`)
  // Compared, since the user may have closed it and moved on meanwhile.
  if (dialog.value !== opened) return
  dialog.value = null
  go({ page: 'delivery', n: sent.n, query: query.value })
}

/** Fields of the edit besides the payload. */
function Fields({ detail }: { readonly detail: DeliveryDetail }) {
  const { event, routes, headers, made, hasEventHeader } = detail
  const own = headers
    .filter(([name]) => !isMadeHeader(name, made))
    .map(([name, value]) => `${name}: ${value}`)
  return (
    <>
      <div class="edit-fields">
        {hasEventHeader ? (
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
        ) : null}
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
        <textarea
          name="headers"
          aria-label="Headers, one a line"
          rows={Math.min(8, own.length + 1)}
          spellcheck={false}
          autoComplete="off"
          defaultValue={own.join('\n')}
        />
        <p class="quiet">One a line. Event, delivery id, signature and length are made for the copy.</p>
      </details>
    </>
  )
}

/** Parses headers, one a line. @throws Error that names the line */
function parseHeaders(text: string, made: readonly string[]): Header[] {
  return text.split('\n').flatMap((line, i): Header[] => {
    if (line.trim() === '') return []
    const [, name = '', value = ''] = /^([^:\s]+)[ \t]*:(.*)$/.exec(line) ?? []
    if (name === '') throw new Error(`Line ${i + 1} of the headers is not “Name: value”.`)
    if (isMadeHeader(name, made)) throw new Error(`${name} is made for each delivery and cannot be set.`)
    return [[name, value.trim()]]
  })
}

/** Formats compact JSON. Text that has several lines already stays as its sender wrote it. */
function readable(json: string): string {
  return hasLines(json) ? json : pretty(json).text
}

function hasLines(json: string): boolean {
  return json.trim().includes('\n')
}

/**
 * Returns the text to send: as received if it was not changed, and compact if its lines come from {@link readable}.
 * @throws SyntaxError for invalid JSON
 */
function payloadToSend(
  edited: string,
  { payload, text }: { readonly payload: string; readonly text: string },
): string {
  JSON.parse(edited)
  if (edited === text) return payload
  return hasLines(edited) && !hasLines(payload) ? compact(edited) : edited
}
