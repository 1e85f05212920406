/** The shapes of the icons, drawn in a box of 16 by 16. They mean nothing without the word next to them. */
const SHAPES = {
  check: 'M3 8.5l3.2 3.2L13 4.8',
  cross: 'M4 4l8 8M12 4l-8 8',
  ring: 'M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6',
  down: 'M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 1 0 0-9.6M4.6 11.4l6.8-6.8',
  copies: 'M5.5 5.5h7.5v7.5H5.5zM10.5 5.5V3H3v7.5h2.5',
  pen: 'M3 13l.6-2.8L10.8 3l2.2 2.2L5.8 12.4zM9.4 4.4l2.2 2.2',
  again: 'M12.8 8a4.8 4.8 0 1 1-1.4-3.4L13 6.2M13 2.8v3.4H9.6',
  back: 'M9.5 3.5L5 8l4.5 4.5',
  forward: 'M6.5 3.5L11 8l-4.5 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  search: 'M7 3a4 4 0 1 0 0 8a4 4 0 1 0 0-8M10 10l3.4 3.4',
  tunnel: 'M2.5 13V9.5a5.5 5.5 0 0 1 11 0V13M5.8 13V9.8a2.2 2.2 0 0 1 4.4 0V13',
  saved: 'M8 2.5v7M5 6.8L8 9.8l3-3M3 13h10',
  diff: 'M4.5 3v7M2.6 8.2l1.9 1.9l1.9-1.9M11.5 13V6M9.6 7.8l1.9-1.9l1.9 1.9',
} as const

export type IconName = keyof typeof SHAPES

/** A decorative icon in the colour of its text. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  )
}
