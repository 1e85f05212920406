import { Dialog } from '../ui/dialog.js'
import { closeDialog } from './open-dialog.js'

const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [['j', '↓'], 'the next, older delivery'],
  [['k', '↑'], 'the previous, newer delivery'],
  [['Enter'], 'open it'],
  [['/'], 'search the payloads'],
  [['r'], 'forward it again'],
  [['e'], 'edit and send it'],
  [['Esc'], 'back to the list'],
  [['?'], 'these keys'],
]

const STRIP_KEYS: typeof KEYS = [
  [['←', '→'], 'choose a minute'],
  [['Shift'], 'with an arrow: extend to a span'],
  [['Enter'], 'show this span'],
  [['Esc'], 'show all times'],
]

const TREE_KEYS: typeof KEYS = [
  [['↑', '↓'], 'move'],
  [['→', '←'], 'unfold and fold'],
  [['Enter'], 'unfold or fold'],
]

/** The keys, by where they work. */
export function KeysDialog() {
  return (
    <Dialog title="Keys" onClose={closeDialog}>
      <KeyTable keys={KEYS} title="Everywhere" />
      <KeyTable keys={STRIP_KEYS} title="In the strip of the last hour" />
      <KeyTable keys={TREE_KEYS} title="In the payload" />
    </Dialog>
  )
}

function KeyTable({ keys, title }: { readonly keys: typeof KEYS; readonly title: string }) {
  return (
    <>
      <h3>{title}</h3>
      <dl class="keys">
        {keys.map(([names, what]) => (
          <div>
            <dt>
              {names.map((name) => (
                <kbd>{name}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}
