import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type {
  Added,
  AddHookRequest,
  AddRouteRequest,
  AddSourceRequest,
  Choices,
  RemoveRouteRequest,
  TargetState,
} from '../api.js'
import { postJson, useApi, whyNot } from './client.js'
import { command } from './command.js'
import { Dialog, DialogForm } from './dialogs.js'
import { dialog, messageFrom, notify } from './model.js'
import { Button, Visible } from './parts.js'

/** Kinds that can be added, with the words of its button. */
const WORDS = { route: 'Add a route…', source: 'Add a source…', hook: 'Add a hook…' } as const

export type Addition = keyof typeof WORDS

/** Button that opens the dialog for an addition. */
export function AddButton({ what }: { readonly what: Addition }) {
  return (
    <Button
      reason={whyNot.value}
      onClick={() => {
        dialog.value = { kind: what }
      }}
    >
      {WORDS[what]}
    </Button>
  )
}

/** Button that removes a route that the profile stores. */
export function RemoveRouteButton({ target: { id, name } }: { readonly target: TargetState }) {
  const remove = async (): Promise<void> => {
    if (!confirm(`Remove the route to ${name}? What waits for it stays in the journal.`)) return
    const request: RemoveRouteRequest = { target: id }
    try {
      notify((await postJson<Added>('routes/remove', request)).text)
    } catch (error) {
      notify(messageFrom(error), true)
    }
  }
  return (
    <Button class="button button-quiet" reason={whyNot.value} onClick={() => void remove()}>
      Remove{' '}
      <span class="sr-only">
        the route to <Visible text={name} />
      </span>
    </Button>
  )
}

export function AddRouteDialog() {
  const add = (fields: URLSearchParams): Promise<Added> => {
    const request: AddRouteRequest = {
      name: given(fields, 'name'),
      match: given(fields, 'match'),
      where: given(fields, 'where'),
      forward: fields.get('forward') ?? '',
    }
    return postJson<Added>('routes', request)
  }
  return (
    <AddDialog
      title="Add a route"
      action="Add the route"
      add={add}
      command="routes add push=http://localhost:3000"
    >
      <Field name="forward" label="Address" placeholder="http://localhost:3000/webhook" isFirst isRequired />
      <Field name="match" label="Events" placeholder="every event, or push, issues.opened" />
      <Field name="where" label="Condition" placeholder="none, or ref==refs/heads/main" />
      <Field name="name" label="Name" placeholder="app" />
      <p class="quiet">
        The profile stores the route, so that relay has it after a restart, too. A command that runs for each
        delivery is added in a terminal, with --exec.
      </p>
    </AddDialog>
  )
}

export function AddSourceDialog() {
  const { value } = useApi<Choices>('choices', () => false)
  const add = (fields: URLSearchParams): Promise<Added> => {
    const request: AddSourceRequest = {
      name: given(fields, 'name'),
      scheme: fields.get('scheme') ?? '',
      secret: fields.get('secret') ?? '',
    }
    return postJson<Added>('sources', request)
  }
  return (
    <AddDialog title="Add a source" action="Store the secret" add={add} command="source add stripe">
      <Field
        name="scheme"
        label="Scheme"
        placeholder="stripe"
        list={value?.schemes ?? []}
        isFirst
        isRequired
      />
      <Field name="name" label="Name" placeholder="as the scheme" />
      <Field name="secret" label="Secret" placeholder="as the sender shows it" isSecret isRequired />
      <p class="quiet">
        The scheme says how the sender signs. The profile stores the secret; of a source that is there, the
        secret before it is accepted, too.
      </p>
    </AddDialog>
  )
}

export function AddHookDialog() {
  const { value } = useApi<Choices>('choices', () => false)
  const users = value?.users ?? []
  const add = (fields: URLSearchParams): Promise<Added> => {
    const request: AddHookRequest = {
      repo: fields.get('repo')?.trim() ?? '',
      user: fields.get('user') ?? '',
      url: given(fields, 'url'),
      events: given(fields, 'events'),
    }
    return postJson<Added>('hooks', request)
  }
  const why =
    value?.users.length === 0 ? `Nobody is signed in. Sign in with ${command('login')} in a terminal.` : null
  return (
    <AddDialog title="Add a hook" action="Add the hook" add={add} why={why} command="hook add octo/demo">
      <Field name="repo" label="Repository" placeholder="octo/demo" isFirst isRequired />
      <Field name="events" label="Events" placeholder="every event, or push,pull_request" />
      <Field name="url" label="Address" placeholder="as of the tunnel, or the public address" />
      <label>
        As
        <select name="user">
          {users.map((user) => (
            <option value={user}>
              <Visible text={user} />
            </option>
          ))}
        </select>
      </label>
    </AddDialog>
  )
}

/** Value of a field. Undefined if it is empty. */
function given(fields: URLSearchParams, name: string): string | undefined {
  return fields.get(name)?.trim() || undefined
}

interface FieldProps {
  readonly name: string
  readonly label: string
  readonly placeholder: string
  /** Values that are offered. Others are allowed. */
  readonly list?: readonly string[]
  readonly isFirst?: boolean
  readonly isRequired?: boolean
  readonly isSecret?: boolean
}

function Field({ name, label, placeholder, list, isFirst, isRequired, isSecret = false }: FieldProps) {
  return (
    <label>
      {label}
      <input
        name={name}
        placeholder={placeholder}
        data-first={isFirst}
        required={isRequired}
        {...typeOf(isSecret, list && `${name}-list`)}
        maxLength={4096}
        autoComplete={isSecret ? 'new-password' : 'off'}
        autoCapitalize="off"
        spellcheck={false}
      />
      {list ? (
        <datalist id={`${name}-list`}>
          {list.map((each) => (
            <option value={each} />
          ))}
        </datalist>
      ) : null}
    </label>
  )
}

function typeOf(isSecret: boolean, list: string | undefined) {
  if (isSecret) return { type: 'password' } as const
  return list === undefined ? ({ type: 'text' } as const) : ({ type: 'text', list } as const)
}

interface AddDialogProps {
  readonly title: string
  /** Words of the button. */
  readonly action: string
  readonly add: (fields: URLSearchParams) => Promise<Added>
  /** Reason why it cannot be added now. */
  readonly why?: string | null
  /** Command that does the same in a terminal. */
  readonly command: string
  readonly children: ComponentChildren
}

/** Dialog with the fields of an addition. It shows the outcome, which can have an address to copy. */
function AddDialog({ title, action, add, why = null, command: line, children }: AddDialogProps) {
  const [added, setAdded] = useState<string | null>(null)
  if (added !== null) return <AddedDialog title={title} text={added} />
  const submit = async (fields: URLSearchParams, isOpen: () => boolean): Promise<void> => {
    const { text } = await add(fields)
    if (isOpen()) setAdded(text)
    else notify(text)
  }
  const hint = (
    <>
      In a terminal: <code>{command(line)}</code>
    </>
  )
  return (
    <Dialog title={title}>
      <DialogForm
        class="edit-fields add"
        action={action}
        why={whyNot.value ?? why}
        hint={hint}
        submit={submit}
      >
        {children}
      </DialogForm>
    </Dialog>
  )
}

/** The outcome, in a dialog of its own so that the fields, which can hold a secret, are gone. */
function AddedDialog({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <Dialog title={title}>
      <p role="status" class="added">
        <Visible text={text} />
      </p>
      <div class="choices">
        <Button
          class="button button-main"
          isFirst
          onClick={() => {
            dialog.value = null
          }}
        >
          Done
        </Button>
      </div>
    </Dialog>
  )
}
