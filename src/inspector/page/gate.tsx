import { useEffect, useRef, useState } from 'preact/hooks'
import { addressOf } from './address.js'
import { open } from './client.js'
import { command } from './command.js'
import { messageFrom, view } from './model.js'

/**
 * Form for a one-time code, if relay does not know this browser. `refusal` is the reason why the code in the address
 * failed.
 */
export function Gate({ refusal }: { readonly refusal: string | null }) {
  const field = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState(refusal)
  useEffect(() => {
    document.title = 'Open the inspector · relay'
    field.current?.focus()
  }, [])
  const submit = async (): Promise<void> => {
    try {
      await open(field.current?.value ?? '')
      location.replace(addressOf(view.value.page === 'open' ? { page: 'list', query: {} } : view.value))
    } catch (error) {
      setProblem(messageFrom(error))
      field.current?.select()
    }
  }
  return (
    <section class="gate" aria-labelledby="gate-title">
      <h1 id="gate-title">Open the inspector</h1>
      {problem === null ? null : (
        <p class="error-text" role="alert">
          {problem}
        </p>
      )}
      <p>
        Run <code>{command('inspect')}</code> in a terminal: it opens this page in your browser.
      </p>
      <p>
        On another machine, or in another browser, run <code>{command('inspect --no-browser')}</code> and
        enter the code that it prints. A code works once, for 5 minutes.
      </p>
      <form
        class="line-form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <label for="code">Code</label>
        <input
          id="code"
          ref={field}
          required
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          placeholder="xxxx-xxxx-xxxx-xxxx"
        />
        <button type="submit" class="button button-main">
          Open
        </button>
      </form>
    </section>
  )
}
