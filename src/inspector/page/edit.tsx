import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryDetail, Header, SendRequest, Sent } from '../api.js'
import { isMadeHeader } from '../made-headers.js'
import { postJson, whyNot } from './client.js'
import { CodeBox } from './code-box.js'
import type { Editor, Problem } from './code.js'
import { Dialog, DialogForm } from './dialogs.js'
import { dialog, formValues, go, notify, query } from './model.js'
import { Visible } from './parts.js'
import { payloadOf } from './payload.js'
import { compact, pretty } from './pretty.js'

const SIGNED = 'Signed again with the current secret, with a new delivery id, and marked as edited.'
const NOT_SIGNED = 'Not signed, since its source has no secret; with a new delivery id, and marked as edited.'

/** Dialog to edit a delivery and send it as a new one: through intake, or to one target. */
export function EditDialog({ detail }: { readonly detail: DeliveryDetail }) {
  const { n: from, event, made } = detail
  const send = (fields: URLSearchParams, body: string): Promise<Sent> => {
    const request: SendRequest = {
      from,
      event: fields.get('event') ?? event,
      headers: parseHeaders(fields.get('headers') ?? '', made),
      body,
      target: fields.get('target') || undefined,
    }
    return postJson<Sent>('send', request)
  }
  return (
    <SendDialog
      title={`Edit #${from} and send`}
      read={() => payloadOf(detail)}
      outcome={detail.unproved ? NOT_SIGNED : SIGNED}
      send={send}
    >
      <Fields detail={detail} />
    </SendDialog>
  )
}

interface SendDialogProps {
  readonly title: string
  /** Reads the payload as received. */
  readonly read: () => Promise<string>
  /** Sentence about what is sent. */
  readonly outcome: string
  /** Sends the payload with the values of the fields. @throws Error whose message is for the user */
  readonly send: (fields: URLSearchParams, body: string) => Promise<Sent>
  /** Fields besides the payload. */
  readonly children: ComponentChildren
}

/** Dialog with a payload to edit. Once that is sent, the new delivery is shown. */
export function SendDialog({ title, read, outcome, send, children }: SendDialogProps) {
  const form = useRef<HTMLFormElement>(null)
  const editor = useRef<Editor | null>(null)
  /** Values before the first change: the payload as received and as shown, and the other fields. */
  const original = useRef({ payload: '', text: '', fields: '' })
  const [problem, setProblem] = useState<Problem | null>(null)
  const submit = async (fields: URLSearchParams, isOpen: () => boolean): Promise<void> => {
    if (!editor.current) return
    showSent(await send(fields, payloadToSend(editor.current.text(), original.current)), isOpen)
  }
  const formText = (): string => (form.current ? formValues(form.current).toString() : '')
  useLayoutEffect(() => void (original.current.fields = formText()), [])
  const mayClose = (): boolean => {
    const { text, fields } = original.current
    const isSame = formText() === fields && (editor.current?.text() ?? text) === text
    return isSame || confirm('Close without sending? Your edit is lost.')
  }
  return (
    <Dialog title={title} isWide mayClose={mayClose}>
      <DialogForm
        class="edit"
        form={form}
        action="Send"
        why={whyNot.value ?? syntaxText(problem)}
        hint={<Visible text={outcome} />}
        isEndInLine
        submit={submit}
      >
        {children}
        <CodeBox
          class="editor"
          what="the payload"
          read={async () => (original.current.payload = await read())}
          show={({ edit }, into, payload) =>
            edit(into, readable(payload), (text) => mustBeJson(text, payload), setProblem)
          }
          onView={(opened) => {
            editor.current = opened
            original.current.text = opened?.text() ?? ''
          }}
        />
      </DialogForm>
    </Dialog>
  )
}

/** Shows what was sent, unless the user has closed the dialog that was open and moved on meanwhile. */
function showSent({ n }: Sent, isOpen: () => boolean): void {
  notify(`Sent as #${n}`)
  if (!isOpen()) return
  dialog.value = null
  go({ page: 'delivery', n, query: query.value })
}

function syntaxText(problem: Problem | null): string | null {
  return (
    problem && `The payload is not JSON: line ${problem.line}, column ${problem.column}: ${problem.message}`
  )
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
        <TargetField targets={routes} />
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

interface TargetFieldProps {
  readonly targets: readonly { readonly id: string; readonly name: string }[]
}

/** Choice between the routes and one target. */
export function TargetField({ targets }: TargetFieldProps) {
  return (
    <label>
      Send to
      <select name="target">
        <option value="">every matching target</option>
        {targets.map(({ id, name }) => (
          <option value={id}>
            only <Visible text={name} />
          </option>
        ))}
      </select>
    </label>
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

/** True for text that begins as JSON of a sender does. Some senders send other text, such as a form. */
function isMeantAsJson(text: string): boolean {
  return /^\s*[[{]/.test(text)
}

/** True if text must be JSON: it begins so, or the payload does that it replaces. */
function mustBeJson(text: string, payload: string): boolean {
  return isMeantAsJson(text) || isMeantAsJson(payload)
}

/** Formats compact JSON. Text that has several lines already, or is no JSON, stays as its sender wrote it. */
function readable(payload: string): string {
  return hasLines(payload) || !isMeantAsJson(payload) ? payload : pretty(payload).text
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
  const isJson = mustBeJson(edited, payload)
  if (isJson) JSON.parse(edited)
  if (edited === text) return payload
  return isJson && hasLines(edited) && !hasLines(payload) ? compact(edited) : edited
}
